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
	// silentTries is the number of unanswered deliveries in a row to a target that should acknowledge: the last of them
	// counts as a refusal.
	silentTries = 3
	// maxDeferral is longer than any retry lane.
	maxDeferral = forever
	// stalled is the reason for the wait of a message that its target did not refuse.
	stalled = "its target takes no more at the moment: it is slow or silent, or much waits for it"
)

// judgeSilence turns the third silence in a row of a target that should acknowledge into a refusal. Package deliver
// defines the meaning of a silence.
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

// afterDelivery decides after a delivery has ended. Turn is the time until the result's Turn.
func afterDelivery(p plan, m moment, f *flight, r deliver.Result, turn time.Duration) step {
	switch r.Outcome {
	case deliver.Delivered:
		return step{kind: arrive}
	case deliver.Unknown: // the target did not refuse it: repeat under the same id
		if errors.Is(r.Err, deliver.ErrHalted) {
			return step{kind: hold, at: f.when()} // its target was just paused or resumed: decide again, in order
		}
		return repeatLater(m, f, r.Err)
	case deliver.Paced:
		as := f.request
		as.RetryAt, as.Paced, as.Deferred = m.now.Add(turn).Stamp(), r.Paced, ""
		return step{kind: pace, as: &as}
	case deliver.Expired:
		return step{kind: dead, why: message.Problemf(message.Expired,
			"there was no turn for it at its target before Delay-Expires %s", f.request.Expires.UTC().Format(time.RFC3339Nano))}
	case deliver.NoRoom:
		s := deferred(p, m, f, maxDeferral, "JetStream has no room: "+r.Reason)
		s.note = &note{slog.LevelError,
			"JetStream has no room to deliver; trying again until it has: " +
				"raise the limits of the account or server, or free some",
			[]any{"target", f.request.Target, "reason", r.Reason}}
		return s
	case deliver.Stalled:
		return deferred(p, m, f, turn, stalled)
	case deliver.Refused:
		if r.Code == jsapi.CodeTooLarge {
			return step{kind: dead, why: message.Problemf(message.TooLarge,
				"%d bytes and headers are more than the target takes: %s", len(f.Data), r.Reason)}
		}
		return refusedByTarget(p, m, f, r.Reason)
	}
	panic("bug: unknown outcome of a delivery")
}

// refusedByTarget sends a message to its next attempt, or to the dead letters after the last.
func refusedByTarget(p plan, m moment, f *flight, reason string) step {
	failed := f.request.Attempts + 1
	allowed, waits := p.allowed(f.request), p.waits(f.request.Target)
	wait := waits[min(failed, len(waits))-1]
	again, expires := m.now.Add(wait.Delay+p.jitter(f.request, failed, wait.Delay)), f.request.Expires
	if !expires.IsZero() && again.After(leader.At(expires)) {
		again = m.now.Add(wait.Delay) // a jitter must not let the message expire
	}
	as := f.request.Refused(m.now.Stamp(), again.Stamp(), reason)
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

// deferred moves a message into a retry lane. That counts as no attempt: the target has not refused the message. The
// message comes again after the wait, or after the wait of the last retry lane if that is shorter.
func deferred(p plan, m moment, f *flight, wait time.Duration, why string) step {
	last, _ := p.retries.Longest(forever)
	wait = min(wait, last.Delay)
	to, _ := p.retries.Longest(wait)
	as := f.request.Defer(m.now.Add(wait).Stamp(), why) // a turn is over by then
	as.Allowed = p.allowed(f.request)
	return step{kind: retry, level: to, as: &as}
}
