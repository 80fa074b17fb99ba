package broker

import (
	"errors"
	"log/slog"
	"time"

	"delaybroker/broker/deliver"
	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
	"delaybroker/broker/outbox"
)

// silentTries is how often a target that should acknowledge may say nothing before that counts as a refusal.
const silentTries = 3

// mostParked is longer than any retry lane.
const mostParked = time.Duration(1<<63 - 1)

// Deliverer reaches targets. Deliver calls done exactly once, from any goroutine; Drain gives back what was not sent, and
// Recall what was not sent of one owner.
type Deliverer interface {
	Deliver(m deliver.Message, done func(deliver.Result))
	Recall(deliver.Owner)
	Drain()
}

// fire delivers a message to its target.
func (w *worker) fire(h *held, now time.Time) {
	if w.stopped.Load() {
		return // the successor fires it
	}
	w.underway++
	w.early.sent(w.clock.base, h.request.Due, time.Now())
	m := deliver.Message{
		Target: h.request.Target, Mode: h.request.Mode, Header: h.request.TargetHeader(), Data: h.Data, Size: h.size,
		Paced: h.request.Paced, Owner: w,
	}
	if expires := h.request.Expires; !expires.IsZero() {
		m.Expires = time.Now().Add(expires.Sub(now))
	}
	w.deliver.Deliver(m, func(r deliver.Result) {
		w.mail.put(func(now time.Time) {
			w.underway--
			w.fired(h, r, now)
		})
	})
}

// MayDeliver reports whether what waits for its turn may still be sent: the lane is ours, and goes on. It is asked from
// any goroutine.
func (w *worker) MayDeliver() bool { return !w.stopped.Load() && w.lease.Held() }

// fired acts on the outcome of a delivery.
func (w *worker) fired(h *held, r deliver.Result, now time.Time) {
	if r.Outcome == deliver.Unknown && errors.Is(r.Err, outbox.ErrTimeout) {
		if h.silent++; h.silent >= silentTries {
			r = deliver.Result{Outcome: deliver.Refused, Reason: "no acknowledgement, although a stream holds the subject"}
		}
	}
	if !errors.Is(r.Err, deliver.ErrDraining) {
		w.tally.outcomes[r.Outcome].Add(1)
	}
	switch r.Outcome {
	case deliver.Delivered:
		w.delivered(h, now)
		w.arrived(h)
	case deliver.Unknown:
		// The target did not refuse it: repeat in place, under the same id.
		w.repeat(h, r.Err, now)
	case deliver.Paced:
		h.request.RetryAt, h.request.Paced = now.Add(time.Until(r.Turn)), r.Pacer
		w.step(h, now)
	case deliver.Expired:
		w.bury(h, message.Problemf(message.Expired, "there was no turn for it at its target before Delay-Expires %s",
			h.request.Expires.UTC().Format(time.RFC3339Nano)), h.request)
	case deliver.NoRoom:
		w.complain(now, slog.LevelError, "JetStream has no room to deliver; trying again until it has: raise the limits of the account or server, or free some", "reason", r.Reason)
		w.park(h, now, mostParked)
	case deliver.Stalled:
		w.park(h, now, time.Until(r.Turn))
	case deliver.Refused:
		h.silent = 0
		if r.Code == jsapi.CodeTooLarge {
			w.bury(h, message.Problemf(message.TooLarge, "%d bytes and headers are more than the target takes: %s", len(h.Data), r.Reason), h.request)
			return
		}
		s := decideRefused(w.cfg.RetryLadder, w.cfg.Attempts, h.request, now, r.Reason)
		then := h.request.Refused(now, s.At)
		if s.Kind == Dead {
			w.bury(h, s.Problem, then)
			return
		}
		w.retry(h, s.Level, then)
	}
}

// park gets a message out of the way, as far as the retry lanes go, and counts no attempt: the target has not refused it.
// It comes again after the wait, or after that of the last retry lane if that is shorter.
func (w *worker) park(h *held, now time.Time, wait time.Duration) {
	waits := w.cfg.RetryLadder.Levels()
	wait = min(wait, waits[len(waits)-1].Delay)
	to := waits[0]
	for _, l := range waits[1:] {
		if l.Delay <= wait {
			to = l
		}
	}
	parked := h.request
	parked.RetryAt, parked.Paced = now.Add(wait), "" // what was a turn is over by then
	w.retry(h, to, parked)
}

// delivered counts. Its lateness is what the lane saw of it: from when it was due until the loop takes in that the target
// has it, by the leader's clock. So the answer's way back is in it, and the time that the clock lags by is not.
func (w *worker) delivered(h *held, now time.Time) {
	w.counts.delivered.Add(1)
	since := h.request.Due
	if h.request.Paced != "" { // its target's rate made it wait, and nobody is to be woken for that
		since = h.request.When()
	}
	w.tally.lateness[w.lane.Kind].observe(max(0, now.Sub(since)))
}
