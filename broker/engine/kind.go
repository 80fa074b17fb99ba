package engine

import (
	"context"
	"time"

	"delaybroker/broker/leader"
	"delaybroker/broker/message"
	"delaybroker/broker/stats"
	"delaybroker/broker/timer/entry"
)

// laneKind is the behaviour that differs between kinds of lanes. The loop is the same for all of them. A new kind of
// lane is a type that embeds plainLane and overrides the methods in which it differs.
type laneKind interface {
	// source returns how the lane's part of its stream is read.
	source() source
	// parse reads the request of a message.
	parse(w *worker, f *flight, in message.Incoming)
	// due decides about a message that is due. It is pure.
	due(p plan, m moment, f *flight) step
	// leaves returns when a message should leave the lane, and whether it waits for another attempt. It is pure.
	leaves(p plan, f *flight) (at leader.Time, again bool)
	// holdsTimers reports whether the messages are the entries of named timers, which stay after they have been read.
	holdsTimers() bool
	// commit removes from the stream the messages up to a sequence, or stores that the lane has passed them.
	commit(ctx context.Context, c *committer, todo commit) error
	// idle sends requests to JetStream that do not depend on a message. It returns the time until the next one.
	idle(w *worker, m moment) time.Duration
	// report changes the report of a pass.
	report(w *worker, r *stats.Report)
}

// source describes how a lane is read.
type source struct {
	filter string  // the subjects of a lane that is only a part of its stream; empty for all
	cursor string  // the subject of the lane's own cursor, which commits nothing; empty for none
	sparse bool    // most sequences of the stream hold no message
	share  float64 // of the instance's memory: see budget
}

// plainLane is the kind of the intake and of the levels.
type plainLane struct{}

func (plainLane) source() source { return source{share: freeShare} }

// parse also parses markers, which become timers.
func (plainLane) parse(w *worker, f *flight, in message.Incoming) {
	policy := w.engine.Keys.Policy
	if !entry.IsMarker(policy.Names, in) {
		f.request, f.problem = policy.Parse(in)
		return
	}
	marker, problem := entry.ParseMarker(policy, in)
	if f.request, f.problem = marker.Request, problem; problem == nil {
		f.timer = w.timers.stream.OfMarker(marker)
	}
}

func (plainLane) due(p plan, m moment, f *flight) step { return fireOrPark(p, m, f) }

func (plainLane) leaves(p plan, f *flight) (at leader.Time, again bool) {
	if f.request.Attempts > 0 {
		return leader.At(f.request.Due), true
	}
	return leader.At(p.ladder.Leaves(f.storedAt().Add(p.delay).Stamp(), f.request.When())), false
}

func (plainLane) holdsTimers() bool { return false }

func (plainLane) commit(ctx context.Context, c *committer, todo commit) error {
	return c.api.Purge(ctx, c.stream, todo.upTo+1)
}

// idle counts the lane's messages while the lane is not being read.
func (plainLane) idle(w *worker, m moment) time.Duration {
	if w.wantsMore(m.local) {
		return forever
	}
	return w.count(m.local, countEvery)
}

func (plainLane) report(*worker, *stats.Report) {}

// retryLane is the kind of lanes with messages that wait for another attempt. Such a message is late from its due time
// on.
type retryLane struct{ plainLane }

// source gives a small share of the memory: the targets of a retry lane often accept nothing.
func (retryLane) source() source { return source{share: retryShare} }

func (retryLane) leaves(_ plan, f *flight) (at leader.Time, again bool) {
	return leader.At(f.request.Due), true
}
