package broker

import (
	"errors"
	"time"

	"delaybroker/broker/deliver"
	"delaybroker/broker/message"
	"delaybroker/broker/reply"
)

// silentTries is how often a target that should acknowledge may say nothing before that counts as a refusal.
const silentTries = 3

// Deliverer reaches targets. Deliver calls done exactly once, from any goroutine; Drain gives back what was not sent.
type Deliverer interface {
	Deliver(m deliver.Message, done func(deliver.Result))
	Drain()
}

// fire delivers a message to its target.
func (w *worker) fire(h *held) {
	if w.draining {
		return // the successor fires it
	}
	w.underway++
	m := deliver.Message{Target: h.request.Target, Mode: h.request.Mode, Header: h.request.TargetHeader(), Data: h.Data}
	w.deliver.Deliver(m, func(r deliver.Result) {
		w.mail.put(func(now time.Time) {
			w.underway--
			w.fired(h, r, now)
		})
	})
}

// fired acts on the outcome of a delivery.
func (w *worker) fired(h *held, r deliver.Result, now time.Time) {
	if r.Outcome == deliver.Unknown && errors.Is(r.Err, reply.ErrTimeout) {
		if h.silent++; h.silent >= silentTries {
			r = deliver.Result{Outcome: deliver.Refused, Reason: "no acknowledgement, although a stream holds the subject"}
		}
	}
	switch r.Outcome {
	case deliver.Delivered:
		w.gauge.delivered.Add(1)
		w.arrived(h)
	case deliver.Unknown:
		// The target did not refuse it: repeat in place, under the same id.
		w.repeat(h, r.Err, now)
	case deliver.Stalled:
		// Out of the way, as far as the retry lanes go: it may be long.
		waits := w.cfg.RetryLadder.Levels()
		last := waits[len(waits)-1]
		h.request.RetryAt = now.Add(last.Delay)
		w.retry(h, last)
	case deliver.Refused:
		h.tries, h.silent = 0, 0
		if r.Code == reply.CodeTooLarge {
			w.bury(h, message.Problemf(message.TooLarge, "%d bytes and headers are more than the target takes: %s", len(h.Data), r.Reason))
			return
		}
		s := decideRefused(w.cfg.RetryLadder, w.cfg.Attempts, h.request, now, r.Reason)
		if s.Kind == Retry {
			h.request = h.request.Refused(now, s.At)
		}
		w.act(h, s, now)
	}
}
