package engine

import (
	"time"

	"delaybroker/broker/message"
	"delaybroker/broker/pause"
)

const (
	// activePauseWait is the interval at which a message in the lane of a pause is checked again, while the pause is
	// active.
	activePauseWait = time.Second
	// pausedReason is the reason that is recorded for a message that waits in a retry lane because its target is paused.
	pausedReason = "its target is paused, and the stream of paused messages does not accept it"
	// If the stream of paused messages has not answered for parkTimeout, and at least maxParking publishes of a lane into
	// that stream are unanswered, further messages wait in a retry lane: a stream without a leader must not fill the
	// lane's memory.
	maxParking  = 256
	parkTimeout = time.Second
)

// pausedLane is the lane of one pause. A worker reads it after the pause was resumed, and stops soon when the pause is
// active again.
type pausedLane struct {
	plainLane
	pause  string // the id of the pause
	filter string // the subjects of the lane
}

func (l pausedLane) source() source { return source{filter: l.filter, share: freeShare} }

// parse parses a message like plainLane, and records in the request that the message has waited for this pause. The
// message keeps this record in later lanes.
func (l pausedLane) parse(w *worker, f *flight, in message.Incoming) {
	l.plainLane.parse(w, f, in)
	f.request.ResumedPause = l.pause
}

func (l pausedLane) due(p plan, m moment, f *flight) step {
	if p, ok := m.pauses.Get(l.pause); ok && p.State == pause.Paused {
		return step{kind: hold, at: m.now.Add(activePauseWait)} // the pause is active again: this worker stops soon
	}
	return l.plainLane.due(p, m, f)
}

// fireOrPark returns the next step of a due message: fire, or park if its target is paused, or awaitClose if the pause
// is closing. If the stream of paused messages does not answer, the message moves into a retry lane. A message that has
// waited for a pause is parked again only if that pause is active again, or if another pause matches the target
// (pause.List.PauseOf).
func fireOrPark(p plan, m moment, f *flight) step {
	id, state := m.pauses.PauseOf(f.request.Target, f.request.ResumedPause)
	if released, ok := m.pauses.Get(f.request.ResumedPause); ok && released.State == pause.Paused { // paused again
		id, state = released.ID, released.State
	}
	switch {
	case state == pause.Over:
		return step{kind: fire}
	case state == pause.Closing:
		return step{kind: awaitClose}
	case !m.canPark:
		return deferStep(p, m, f, forever, pausedReason)
	}
	request := f.request // no RetryAt: after the pause, the messages are sent in the order of their due times
	request.RetryAt, request.DeferralReason, request.ResumedPause = time.Time{}, "", ""
	return step{kind: park, pause: id, request: &request}
}

// parking tracks whether the stream of paused messages answers a lane's publishes. The zero parking assumes that the
// stream answers.
type parking struct {
	unanswered int       // number of published messages without an answer
	lastAnswer time.Time // local; when the last answer came or, if later, when unanswered last rose from zero
}

// begin records that a message is published into the stream of paused messages. Its repeats are not recorded.
func (p *parking) begin(local time.Time) {
	if p.unanswered == 0 {
		p.lastAnswer = local
	}
	p.unanswered++
}

// recordAnswer records an answer. It ignores an error, because the message is published again.
func (p *parking) recordAnswer(a storeAnswer, local time.Time) {
	if a.Err != nil {
		return
	}
	p.unanswered, p.lastAnswer = max(0, p.unanswered-1), local
}

// accepts reports whether another message may be published into the stream of paused messages.
func (p *parking) accepts(local time.Time) bool {
	return p.unanswered < maxParking || local.Sub(p.lastAnswer) < parkTimeout
}
