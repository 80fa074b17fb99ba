package engine

import (
	"context"
	"log/slog"
	"time"

	"delaybroker/broker/lane"
	"delaybroker/broker/leader"
)

const (
	// lookTimeout bounds the lateness when the answer to a look is lost with its connection.
	lookTimeout = 2 * time.Second
	// lookRetry is the delay before a failed look is repeated.
	lookRetry = time.Second
	// longestSleep is the maximum sleep of the loop while messages are in memory: after a machine was suspended, messages
	// are late by no more than that.
	longestSleep = time.Minute
	// askAhead is the time before a message is due at which the loop asks the leader for its time, if the last proof is
	// too old.
	askAhead = 50 * time.Millisecond
)

// leaderClock is the clock of a lane, and the looks that keep it proven. The lane's loop owns it.
type leaderClock struct {
	*leader.Clock
	looking bool      // a look is underway
	retry   time.Time // local; when the leader may be asked again after a failed look
	counted time.Time // local; when the last look that counts messages began
}

func newLeaderClock(local time.Time) *leaderClock { return &leaderClock{Clock: leader.NewClock(local)} }

// take handles an answer of the stream's leader.
func (c *leaderClock) take(s lane.Sample) {
	c.Look(leader.Answer{Time: s.ServerTime, Received: s.Received, Leader: s.Leader, LastSeq: s.LastSeq})
}

// awaitDue returns the sleep until the next message, which is due after the time left, and makes sure that the clock is
// proven by then.
func (w *worker) awaitDue(left time.Duration, local time.Time, proven bool) time.Duration {
	left = max(left, 0)
	if w.clock.Suspended(local) {
		w.look()
	}
	// The look begins before the last proof has lapsed, or firing would wait for the answer. A look serves the messages
	// that are due within askAhead.
	if w.clock.Age(local)+left > leader.Trust-askAhead {
		if left > askAhead {
			return min(left-askAhead, longestSleep)
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
		sample, err := w.engine.JetStream.Sample(ctx, w.lane.Stream)
		w.mail.Put(looked{sample, err})
	})
}

// looked is the event that a look at the stream has ended.
type looked struct {
	sample lane.Sample
	err    error
}

func (l looked) handle(w *worker, m moment) {
	w.clock.looking = false
	if l.err != nil {
		w.clock.retry = m.local.Add(lookRetry)
		w.notes.Log(slog.LevelWarn,
			"the stream's leader does not tell its time, and nothing is delivered without; trying again", "err", l.err)
		return
	}
	w.sampled(l.sample)
}

// sampled handles an answer of the stream's leader.
func (w *worker) sampled(s lane.Sample) {
	w.clock.take(s)
	w.reading.looked(s)
}
