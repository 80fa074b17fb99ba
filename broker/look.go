package broker

import (
	"context"
	"log/slog"
	"time"

	"delaybroker/broker/lane"
)

const (
	// lookTimeout bounds the lateness when the answer to a look is lost with its connection.
	lookTimeout = 2 * time.Second
	// lookRetry is how soon a look that failed is repeated.
	lookRetry = time.Second
	// lookUp is how long the loop sleeps at most while messages are in memory: after a machine was suspended, messages are
	// late by no more than that.
	lookUp = time.Minute
)

// awaitDue returns how long to sleep when the next message is due after the time left, and makes sure that the clock is
// proven by then.
func (w *worker) awaitDue(left time.Duration, local time.Time, proven bool) time.Duration {
	left = max(left, 0)
	if w.clock.suspended(local) {
		w.look()
	}
	// The look begins before the last proof has lapsed, or firing would wait for the answer. A look serves the messages
	// that are due within clockAhead.
	if w.clock.age(local)+left > clockTrust-clockAhead {
		if left > clockAhead {
			return min(left-clockAhead, lookUp)
		}
		if retry := w.clock.retry.Sub(local); retry > 0 {
			return retry
		}
		w.look()
	}
	if !proven {
		return forever // the look's answer wakes the loop
	}
	return left
}

// look asks the stream's leader for its time.
func (w *worker) look() {
	if w.clock.looking {
		return
	}
	w.clock.looking = true
	w.wg.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), lookTimeout)
		defer cancel()
		sample, err := w.shared.jetstream.sample(ctx, w.lane.Stream)
		w.mail.put(looked{sample, err})
	})
}

func (w *worker) looked(l looked, local time.Time) {
	w.clock.looking = false
	if l.err != nil {
		w.clock.retry = local.Add(lookRetry)
		w.notes.Log(slog.LevelWarn,
			"the stream's leader does not tell its time, and nothing is delivered without; trying again", "err", l.err)
		return
	}
	w.sampled(l.sample)
}

// sampled takes in an answer of the stream's leader.
func (w *worker) sampled(s lane.Sample) {
	w.clock.look(s)
	w.reading.looked(s)
}
