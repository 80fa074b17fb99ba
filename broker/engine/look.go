package engine

import (
	"context"
	"log/slog"
	"time"

	"delaybroker/broker/lane"
	"delaybroker/broker/leader"
)

const (
	// lookTimeout bounds the lateness of messages when the answer to a look is lost with its connection.
	lookTimeout = 2 * time.Second
	// lookRetry is the delay before a failed look is repeated.
	lookRetry = time.Second
	// maxSleep is the maximum sleep of the loop while messages are in memory. It bounds the lateness of messages after the
	// machine was suspended.
	maxSleep = time.Minute
	// askAhead is the time before a due time at which the loop asks the leader for its time, if the last proof is too old.
	askAhead = 50 * time.Millisecond
)

// leaderClock is the clock of a lane's leader. A look is a request for the leader's time: it renews the clock's proof.
// Only the lane's loop uses a leaderClock.
type leaderClock struct {
	*leader.Clock
	looking bool      // a look is underway
	retry   time.Time // local; the earliest time of the next look after a failed look
	counted time.Time // local; when the last request for the number of messages was sent
}

func newLeaderClock(local time.Time) *leaderClock { return &leaderClock{Clock: leader.NewClock(local)} }

// take handles an answer of the stream's leader.
func (c *leaderClock) take(s lane.Sample) {
	c.Look(leader.Answer{Time: s.ServerTime, Received: s.Received, Leader: s.Leader, LastSeq: s.LastSeq})
}

// awaitDue returns the time for which the loop may sleep. Left is the time until the next message is due. If the last
// proof of the leader's time would be too old by then, awaitDue asks the leader.
func (w *worker) awaitDue(left time.Duration, local time.Time, proven bool) time.Duration {
	left = max(left, 0)
	if w.clock.Suspended(local) {
		w.look()
	}
	// The look begins askAhead before the message is due, so that the message does not wait for the answer.
	if w.clock.Age(local)+left > leader.Trust-askAhead {
		if left > askAhead {
			return min(left-askAhead, maxSleep)
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
			"the stream's leader does not report its time, will retry: until it does, no message is delivered", "err", l.err)
		return
	}
	w.sampled(l.sample)
}

// sampled handles an answer of the stream's leader.
func (w *worker) sampled(s lane.Sample) {
	w.clock.take(s)
	w.reading.looked(s)
}
