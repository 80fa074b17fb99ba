package engine

import (
	"context"
	"time"

	"delaybroker/broker/leader"
	"delaybroker/broker/message"
	"delaybroker/broker/stats"
	"delaybroker/broker/timer/entry"
)

// laneKind is the behaviour in which kinds of lanes differ. Each kind other than plainLane embeds plainLane and
// overrides some methods.
type laneKind interface {
	// source returns the description of the messages to read.
	source() source
	// parse sets the request, the problem and the timer of a message.
	parse(w *worker, f *flight, in message.Incoming)
	// due returns the next step of a due message. It is pure.
	due(p plan, m moment, f *flight) step
	// deadline returns the time from which on a message is overdue if it is still in the lane. Retry is true if the
	// message waits for another attempt: then it is overdue even while it waits on the wheel. It is pure.
	deadline(p plan, f *flight) (at leader.Time, retry bool)
	// holdsTimers reports whether the messages are the entries of named timers, which stay in the lane after they have
	// been read, and may be deleted at any time, in any order: see lane.ReaderConfig.Sparse.
	holdsTimers() bool
	// yields reports whether the lane reads nothing for now, so that other lanes can send.
	yields(local time.Time) bool
	// commit removes the messages up to todo.upTo from the stream, or stores this position as a cursor.
	commit(ctx context.Context, c *committer, todo commit) error
	// poll sends JetStream the periodic requests that are due. It returns the time until the next one is due.
	poll(w *worker, m moment) time.Duration
	// report sets the fields of r that this kind of lane computes differently.
	report(w *worker, r *stats.Report)
}

// source describes the messages of a lane, and the lane's share of the memory.
type source struct {
	filter string  // the subjects of a lane that is only a part of its stream; empty for a whole stream
	cursor string  // the subject of the messages that store the lane's cursor, which need no commit; empty for none
	share  float64 // the lane's share of the instance's memory: see budget
}

// plainLane is the kind of the intake and of the levels.
type plainLane struct{}

func (plainLane) source() source { return source{share: freeShare} }

// parse parses a message or a marker. A marker becomes a timer.
func (plainLane) parse(w *worker, f *flight, in message.Incoming) {
	policy := w.engine.Keys.Policy
	if !entry.IsMarker(policy.Names, in) {
		f.request, f.problem = policy.Parse(in)
		return
	}
	marker, problem := entry.ParseMarker(policy, in)
	if f.request, f.problem = marker.Request, problem; problem == nil {
		f.timer = w.timers.lane.MarkerAlarm(marker)
	}
}

func (plainLane) due(p plan, m moment, f *flight) step { return fireOrPark(p, m, f) }

func (plainLane) deadline(p plan, f *flight) (at leader.Time, retry bool) {
	if f.request.Attempts > 0 {
		return leader.At(f.request.Due), true
	}
	return leader.At(p.Ladder.LeaveTime(f.storedAt().Add(p.delay).Stamp(), f.request.NextAttempt())), false
}

func (plainLane) holdsTimers() bool { return false }

func (plainLane) yields(time.Time) bool { return false }

func (plainLane) commit(ctx context.Context, c *committer, todo commit) error {
	return c.api.PurgeBelow(ctx, c.stream, c.kind.source().filter, todo.upTo+1)
}

// poll requests the number of the lane's messages while the lane is not being read.
func (plainLane) poll(w *worker, m moment) time.Duration {
	if w.wantsMore(m.local) {
		return forever
	}
	return w.count(m.local, countInterval)
}

func (plainLane) report(*worker, *stats.Report) {}

// retryLane is the kind of the lanes in which messages wait for another attempt. Such a message is overdue from its due
// time on, even while it waits for the attempt.
type retryLane struct{ plainLane }

func (retryLane) source() source { return source{share: retryShare} }

func (retryLane) deadline(_ plan, f *flight) (at leader.Time, retry bool) {
	return leader.At(f.request.Due), true
}
