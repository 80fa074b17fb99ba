package engine

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"delaybroker/broker/acks"
	"delaybroker/broker/deliver"
	"delaybroker/broker/jsapi"
	"delaybroker/broker/leader"
	"delaybroker/broker/message"
)

const (
	// If a target that should acknowledge does not answer silentTries deliveries in a row, the worker counts one
	// refusal.
	silentTries = 3
	// stalledReason is the reason that is recorded for a message that waits in a retry lane because its target accepts no
	// more messages.
	stalledReason = "its target accepts no more at the moment: it is slow or silent, or many messages wait for it"
)

// judgeSilence returns a refusal if the result is at least the silentTries-th silence in a row; f.silences already
// counts it. It returns any other result unchanged. A silence is a timeout of a target that should acknowledge: see
// package deliver.
func judgeSilence(f *flight, r deliver.Result) deliver.Result {
	if isSilence(r) && f.silences >= silentTries {
		return deliver.Result{Outcome: deliver.Refused,
			Reason: fmt.Sprintf("%s (%d times in a row)", r.Reason, silentTries)}
	}
	return r
}

func isSilence(r deliver.Result) bool {
	return r.Outcome == deliver.Unknown && errors.Is(r.Err, acks.ErrTimeout)
}

// afterDelivery decides after a delivery has ended. Wait is the time from now until deliver.Result.RetryAt, which only
// the outcomes Paced and Stalled have: the reserved send time, or the end of a stall.
func afterDelivery(p plan, m moment, f *flight, r deliver.Result, wait time.Duration) step {
	switch r.Outcome {
	case deliver.Delivered:
		return step{kind: arrive}
	case deliver.Unknown: // the target may have the message: repeat the delivery under the same id
		if errors.Is(r.Err, deliver.ErrHalted) {
			return step{kind: hold, at: f.nextAttempt()} // the target is paused: decide again
		}
		return repeatLater(m, f, r.Err)
	case deliver.Paced:
		request := f.request
		request.RetryAt, request.Reservation, request.DeferralReason = m.now.Add(wait).Stamp(), r.Turn, ""
		return step{kind: pace, request: &request}
	case deliver.Expired:
		if r.Reason == "" { // it waited for room
			return step{kind: dead, problem: expiredProblem(f)}
		}
		return step{kind: dead, problem: message.Problemf(message.Expired, "%s before Delay-Expires %s", r.Reason,
			f.request.Expires.UTC().Format(time.RFC3339Nano))}
	case deliver.NoRoom:
		s := deferStep(p, m, f, forever, "JetStream has no room: "+r.Reason)
		s.line = &logLine{slog.LevelError,
			"JetStream has no room to deliver, will retry: " +
				"raise the limits of the account or server, or delete messages",
			[]any{"target", f.request.Target, "reason", r.Reason}}
		return s
	case deliver.Stalled:
		return deferStep(p, m, f, wait, stalledReason)
	case deliver.Refused:
		if r.Code == jsapi.CodeTooLarge {
			return step{kind: dead, problem: message.Problemf(message.TooLarge,
				"a body of %d bytes with its headers is larger than the target accepts: %s", len(f.Data), r.Reason)}
		}
		return refusedByTarget(p, m, f, r.Reason)
	}
	panic("bug: unknown outcome of a delivery")
}

// refusedByTarget returns the step after a refusal. The message moves into a retry lane. It becomes a dead letter
// instead if this was the last allowed attempt, or if the message would expire before the next attempt.
func refusedByTarget(p plan, m moment, f *flight, reason string) step {
	attempts := f.request.Attempts + 1
	maxAttempts, waits := p.maxAttempts(f.request), p.RetryRules.Lookup(f.request.Target, p.RetryLadder).Levels()
	wait := waits[min(attempts, len(waits))-1]
	retryAt, expires := m.now.Add(wait.Delay+p.jitter(f.request, attempts, wait.Delay)), f.request.Expires
	if !expires.IsZero() && retryAt.After(leader.At(expires)) {
		retryAt = m.now.Add(wait.Delay) // the jitter must not be the reason why the message expires
	}
	request := f.request.WithRefusal(m.now.Stamp(), retryAt.Stamp(), reason)
	request.AllowedRefusals = maxAttempts
	s := step{kind: retry, level: wait, request: &request, logKey: request.Target}
	s.line = &logLine{slog.LevelWarn, "target refuses",
		[]any{"target", request.Target, "reason", request.LastError, "attempt", attempts, "of", maxAttempts}}
	if problem := f.request.AfterRefusal(attempts, maxAttempts, retryAt.Stamp(), reason); problem != nil {
		s.kind, s.problem, request.RetryAt = dead, problem, time.Time{}
	}
	return s
}

// deferStep returns the step into a retry lane for a message that its target has not refused. This step does not count
// as an attempt. The broker delivers the message again after the wait, but at the latest after the delay of the longest
// retry lane.
func deferStep(p plan, m moment, f *flight, wait time.Duration, reason string) step {
	longest, _ := p.RetryLadder.LongestFit(forever)
	wait = min(wait, longest.Delay)
	level, _ := p.RetryLadder.LongestFit(wait)
	request := f.request.WithDeferral(m.now.Add(wait).Stamp(), reason) // WithDeferral also drops the reserved send time
	request.AllowedRefusals = p.maxAttempts(f.request)
	return step{kind: retry, level: level, request: &request}
}
