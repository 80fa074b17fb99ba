package engine

import (
	"sync"
	"time"

	"delaybroker/broker/leader"
)

// watermarkStep bounds the disorder between lanes. In a backlog, a lane sends no message that is due more than
// watermarkStep after a message that another lane has yet to send.
const watermarkStep = 100 * time.Millisecond

// watermark brings the backlogs of several lanes into one order. Each lane reports a mark: the earliest due time of the
// messages that the lane can send or may still read. The low watermark is the earliest mark. No lane sends a message
// that is due more than watermarkStep after the low watermark. Each lane decides how long it waits for lanes without
// progress.
//
// Messages to one target are sent in this order. Messages to different targets may be sent in another order. A target
// has a share of unanswered messages (see package deliver). While the share is used up, further messages to the target
// wait, and messages to other targets overtake them. Tried and rejected: marks that wait for the answers of the
// targets. All lanes would wait, at each step, for the slowest target.
//
// A watermark is safe for concurrent use. The zero watermark is ready to use.
type watermark struct {
	mu        sync.Mutex                       // guards the fields below
	marks     map[*watermarkMember]leader.Time // a mark is zero until the lane's first advance
	low       leader.Time                      // the earliest mark, rounded down to a multiple of watermarkStep
	undecided int                              // the number of expected lanes without a call of Decide
}

// watermarkMember is the membership of one lane.
type watermarkMember struct {
	group *watermark
	wake  func()
}

// expect announces a number of lanes that may join. No member sends until Decide has been called for each of these
// lanes.
func (g *watermark) expect(lanes int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.undecided += lanes
}

// Decide must be called exactly once for each expected lane: when the lane has joined, or when it is known that this
// instance does not work the lane.
func (g *watermark) Decide() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.undecided--; g.undecided == 0 {
		for m := range g.marks {
			m.wake()
		}
	}
}

// join adds a lane. From then on, the other members wait for this lane. The watermark calls wake, on any goroutine,
// when the lane's limit may have risen. The watermark holds its lock during the call, so wake must not block, and must
// not call the watermark.
func (g *watermark) join(wake func()) *watermarkMember {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.marks == nil {
		g.marks = make(map[*watermarkMember]leader.Time)
	}
	m := &watermarkMember{group: g, wake: wake}
	g.marks[m], g.low = leader.Time{}, leader.Time{}
	return m
}

// advance sets the mark of the lane, and returns the lane's limit: the latest due time of messages that the lane may
// send. The limit is zero if the lane must not send yet.
func (m *watermarkMember) advance(mark leader.Time) (limit leader.Time) {
	g := m.group
	g.mu.Lock()
	defer g.mu.Unlock()
	g.marks[m] = mark
	g.updateLocked(m)
	if g.undecided > 0 || g.low.IsZero() {
		return leader.Time{}
	}
	return g.low.Add(watermarkStep)
}

// leave removes the lane. The other members no longer wait for this lane.
func (m *watermarkMember) leave() {
	g := m.group
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.marks, m)
	g.updateLocked(m)
}

// updateLocked computes the low watermark. If it has risen, updateLocked wakes all members except the caller. The
// caller must hold the lock.
func (g *watermark) updateLocked(caller *watermarkMember) {
	var low leader.Time
	first := true
	for _, mark := range g.marks {
		if first || mark.Before(low) {
			low, first = mark, false
		}
	}
	low = low.Truncate(watermarkStep)
	risen := low.After(g.low)
	g.low = low
	if !risen {
		return
	}
	for m := range g.marks {
		if m != caller {
			m.wake()
		}
	}
}
