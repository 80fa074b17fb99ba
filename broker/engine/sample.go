package engine

import (
	"context"
	"log/slog"
	"time"

	"delaybroker/broker/lane"
	"delaybroker/broker/leader"
)

const (
	// sampleTimeout is the timeout of a request for the leader's time. It bounds the lateness of messages when the answer
	// is lost with the connection.
	sampleTimeout = 2 * time.Second
	// sampleRetry is the delay before a failed request for the leader's time is repeated.
	sampleRetry = time.Second
	// sampleReminder is the minimum interval between two log lines of a lane about failed requests. It is long, because
	// in an outage all lanes log.
	sampleReminder = time.Minute
	// maxSleep is the maximum sleep of the loop while messages wait on the wheel. It bounds the lateness of messages after
	// the machine was suspended.
	maxSleep = time.Minute
	// The loop requests the leader's time askAhead before a message is due, if the last proof would be too old by then.
	askAhead = 50 * time.Millisecond
)

// leaderClock estimates the time of a lane's leader. Each sample of the stream renews the clock's proof of that time.
// Only the lane's loop uses a leaderClock.
type leaderClock struct {
	*leader.Clock
	sampling  bool      // a request for a sample has no answer yet
	retryAt   time.Time // local; the earliest time of the next request after a failed request
	countedAt time.Time // local; when the number of messages was last requested
}

func newLeaderClock(local time.Time) *leaderClock { return &leaderClock{Clock: leader.NewClock(local)} }

// record records a sample as a proof of the leader's time.
func (c *leaderClock) record(s lane.Sample) {
	c.Record(leader.Reading{Time: s.ServerTime, Received: s.Received, Leader: s.Leader, LastSeq: s.LastSeq})
}

// awaitDue returns the duration for which the loop may sleep, if the next message is due after the duration remaining.
// If the last proof of the leader's time will be too old then, awaitDue requests another sample, but at most askAhead
// before that time. After a suspension of the machine, it requests a sample immediately.
func (w *worker) awaitDue(remaining time.Duration, m moment) time.Duration {
	remaining = max(remaining, 0)
	if w.clock.Suspended(m.local) {
		w.requestSample()
	}
	if w.clock.Age(m.local)+remaining > leader.Trust-askAhead {
		if remaining > askAhead { // the request follows askAhead before the message is due, so the answer is there in time
			return min(remaining-askAhead, maxSleep)
		}
		if retry := w.clock.retryAt.Sub(m.local); retry > 0 {
			return retry
		}
		w.requestSample()
	}
	if !m.proven {
		return forever // the sample wakes the loop
	}
	return remaining
}

// requestSample requests a sample of the stream from its leader, unless a request has no answer yet.
func (w *worker) requestSample() {
	if w.clock.sampling {
		return
	}
	w.clock.sampling = true
	w.request(sampleTimeout, func(ctx context.Context) event {
		sample, err := w.engine.JetStream.Sample(ctx, w.lane.Stream)
		return sampleAnswer{sample, err}
	})
}

// sampleAnswer is the event that a request for a sample has ended.
type sampleAnswer struct {
	sample lane.Sample
	err    error
}

func (a sampleAnswer) handle(w *worker, m moment) {
	w.clock.sampling = false
	w.obstacles.note("sample", w.lane.Stream, a.err)
	if a.err != nil {
		w.clock.retryAt = m.local.Add(sampleRetry)
		w.limitedLog.LogEvery(sampleReminder, slog.LevelWarn,
			"the stream's leader does not report its time; due messages may have to wait for it; will retry", "err", a.err)
		return
	}
	w.recordSample(a.sample)
}

func (w *worker) recordSample(s lane.Sample) {
	w.clock.record(s)
	w.reading.recordSample(s)
}
