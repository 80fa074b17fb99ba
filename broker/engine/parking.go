package engine

import (
	"context"
	"time"

	"delaybroker/broker/message"
	"delaybroker/broker/pause"
)

const (
	// haltWait is the delay before a message in the lane of a pause is checked again, if the pause has become active
	// again.
	haltWait = time.Second
	// pausedOut is the reason that is recorded for a message for a paused target that waits in a retry lane.
	pausedOut = "its target is paused, and the stream of paused messages refuses it"
	// If the stream of paused messages has not answered for parkTimeout, a lane has at most maxParking publishes into
	// it without an answer. Any more messages wait in a retry lane: a stream without a leader must not fill the lane's
	// memory.
	maxParking  = 256
	parkTimeout = time.Second
)

// pausedLane is the lane of one pause. It is read only while it drains: after the pause was resumed.
type pausedLane struct {
	plainLane
	pause  string // its id
	filter string // its subjects
}

func (l pausedLane) source() source { return source{filter: l.filter, share: freeShare} }

// parse also records in the request the pause for which the message has waited. The message keeps this record in later
// lanes.
func (l pausedLane) parse(w *worker, f *flight, in message.Incoming) {
	l.plainLane.parse(w, f, in)
	f.request.Released = l.pause
}

func (l pausedLane) due(p plan, m moment, f *flight) step {
	if again, ok := m.pauses.Get(l.pause); ok && again.State == pause.Paused {
		return step{kind: hold, at: m.now.Add(haltWait)} // the pause is active again: this worker stops soon
	}
	return l.plainLane.due(p, m, f)
}

func (l pausedLane) commit(ctx context.Context, c *committer, todo commit) error {
	return c.api.PurgeBelow(ctx, c.stream, l.filter, todo.upTo+1)
}

// fireOrPark returns the next step of a due message: fire, or park if its target is paused. A message that has waited
// for a pause is sent when that pause is resumed, from any lane, unless another pause matches its target.
func fireOrPark(p plan, m moment, f *flight) step {
	id, state := m.pauses.PauseOf(f.request.Target, f.request.Released)
	if again, ok := m.pauses.Get(f.request.Released); ok && again.State == pause.Paused {
		id, state = again.ID, again.State
	}
	switch {
	case state == pause.Over:
		return fireAtHome(p, m, f)
	case state == pause.Closing:
		return step{kind: halt}
	case !m.parks:
		return deferred(p, m, f, maxDeferral, pausedOut)
	}
	as := f.request // after the pause, it is sent in the order of due times, and keeps its reserved send time
	as.RetryAt, as.Deferred, as.Released = time.Time{}, "", ""
	return step{kind: park, pause: id, as: &as}
}

// parking tracks whether the stream of paused messages answers a lane's publishes. The zero parking assumes that it
// does.
type parking struct {
	open int       // number of messages without an answer
	at   time.Time // local; when the stream last answered or, if later, when open left zero
}

// begin records the first publish of a message into that stream.
func (p *parking) begin(local time.Time) {
	if p.open == 0 {
		p.at = local
	}
	p.open++
}

// answered records an answer. A timeout changes nothing: the message is published again.
func (p *parking) answered(a storeAnswer, local time.Time) {
	if a.err != nil {
		return
	}
	p.open, p.at = max(0, p.open-1), local
}

// able reports whether another message may be published into that stream.
func (p *parking) able(local time.Time) bool {
	return p.open < maxParking || local.Sub(p.at) < parkTimeout
}
