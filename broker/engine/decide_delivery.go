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
	// maxDeferral selects the longest retry lane.
	maxDeferral = forever
	// stalled is the reason that the worker records for a message that waits in a retry lane although no target has
	// refused it.
	stalled = "its target accepts no more at the moment: it is slow or silent, or many messages wait for it"
)

// judgeSilence turns the last of silentTries silences in a row into a refusal. A silence is a timeout of a target that
// should acknowledge: see package deliver.
func judgeSilence(f *flight, r deliver.Result) deliver.Result {
	if silence(r) && f.silent >= silentTries {
		return deliver.Result{Outcome: deliver.Refused,
			Reason: fmt.Sprintf("%s (%d times in a row)", r.Reason, silentTries)}
	}
	return r
}

func silence(r deliver.Result) bool {
	return r.Outcome == deliver.Unknown && errors.Is(r.Err, acks.ErrTimeout)
}

// afterDelivery decides after a delivery has ended. Turn is the time until the send time that the target's rate has
// reserved (deliver.Result.RetryAt).
func afterDelivery(p plan, m moment, f *flight, r deliver.Result, turn time.Duration) step {
	switch r.Outcome {
	case deliver.Delivered:
		return step{kind: arrive}
	case deliver.Unknown: // the target may have the message: repeat the delivery under the same id
		if errors.Is(r.Err, deliver.ErrHalted) {
			return step{kind: hold, at: f.when()} // the target was just paused or resumed: decide again, by due time
		}
		return repeatLater(m, f, r.Err)
	case deliver.Paced:
		as := f.request
		as.RetryAt, as.Paced, as.Deferred = m.now.Add(turn).Stamp(), r.Paced, ""
		return step{kind: pace, as: &as}
	case deliver.Expired:
		return step{kind: dead, why: message.Problemf(message.Expired,
			"its target's rate had no send time for it before Delay-Expires %s",
			f.request.Expires.UTC().Format(time.RFC3339Nano))}
	case deliver.NoRoom:
		s := deferred(p, m, f, maxDeferral, "JetStream has no room: "+r.Reason)
		s.note = &note{slog.LevelError,
			"JetStream has no room to deliver, will retry: " +
				"raise the limits of the account or server, or delete messages",
			[]any{"target", f.request.Target, "reason", r.Reason}}
		return s
	case deliver.Stalled:
		return deferred(p, m, f, turn, stalled)
	case deliver.Refused:
		if r.Code == jsapi.CodeTooLarge {
			return step{kind: dead, why: message.Problemf(message.TooLarge,
				"a body of %d bytes with its headers is larger than the target accepts: %s", len(f.Data), r.Reason)}
		}
		return refusedByTarget(p, m, f, r.Reason)
	}
	panic("bug: unknown outcome of a delivery")
}

// refusedByTarget returns the step after a refusal. The message goes into a retry lane. After the last attempt, it goes
// to the dead letters.
func refusedByTarget(p plan, m moment, f *flight, reason string) step {
	failed := f.request.Attempts + 1
	allowed, waits := p.allowed(f.request), p.waits(f.request.Target)
	wait := waits[min(failed, len(waits))-1]
	again, expires := m.now.Add(wait.Delay+p.jitter(f.request, failed, wait.Delay)), f.request.Expires
	if !expires.IsZero() && again.After(leader.At(expires)) {
		again = m.now.Add(wait.Delay) // the jitter must not be the reason why the message expires
	}
	as := f.request.WithRefusal(m.now.Stamp(), again.Stamp(), reason)
	as.Allowed = allowed
	s := step{kind: retry, level: wait, as: &as, about: as.Target, note: &note{slog.LevelWarn, "target refuses",
		[]any{"target", as.Target, "reason", as.LastError, "attempt", failed, "of", allowed}}}
	switch {
	case failed >= allowed:
		s.kind, s.why = dead, message.Problemf(message.Undelivered,
			"the target refused all of %d attempts; last error: %s", failed, reason)
	case !expires.IsZero() && again.After(leader.At(expires)):
		s.kind, s.why = dead, message.Problemf(message.Expired,
			"refused %d times, and the next attempt would come after Delay-Expires %s; last error: %s",
			failed, expires.UTC().Format(time.RFC3339Nano), reason)
	}
	if s.kind == dead {
		as.RetryAt = time.Time{}
	}
	return s
}

// deferred returns the step into a retry lane for a message that its target has not refused. This step does not count
// as an attempt. The broker delivers the message again after the wait, or after the delay of the longest retry lane if
// that delay is shorter.
func deferred(p plan, m moment, f *flight, wait time.Duration, why string) step {
	last, _ := p.retries.Longest(forever)
	wait = min(wait, last.Delay)
	to, _ := p.retries.Longest(wait)
	as := f.request.WithDeferral(m.now.Add(wait).Stamp(), why) // WithDeferral also drops the reserved send time
	as.Allowed = p.allowed(f.request)
	return step{kind: retry, level: to, as: &as}
}
