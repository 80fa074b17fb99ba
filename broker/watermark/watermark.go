// Package muster brings the backlogs of several lanes into one order. Each lane has a mark: the earliest due time of
// the messages that it can send or may still read. No lane sends a message that is due more than a [Step] after the
// oldest mark. How long the others wait for a lane that makes no progress is decided by each of them.
//
// One target gets its messages in this order. Of several targets, one that has its share outstanding waits for its own
// answers (see package deliver), and messages to the others overtake those that wait. If marks were held back until the
// targets have answered, all lanes would wait, at each step, for the slowest target.
package muster

import (
	"sync"
	"time"

	"delaybroker/broker/leader"
)

// Step bounds the disorder between lanes: a message may go out before one of another lane that is due earlier by no
// more than this.
const Step = 100 * time.Millisecond

// Muster is the lanes that have a backlog. The zero Muster is ready to use.
type Muster struct {
	mu    sync.Mutex
	marks map[*Member]leader.Time // zero for a lane that has read nothing yet
	floor leader.Time             // the oldest mark, rounded down to a step
	open  int                     // lanes for which it is not known yet whether this instance works them
}

// Member is a lane that takes part.
type Member struct {
	of   *Muster
	wake func()
}

// Expect announces lanes for which it is not known yet whether they will join. Until it is known of all of them, no
// lane sends.
func (m *Muster) Expect(lanes int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.open += lanes
}

// Known says that one of these lanes has joined, or is not worked by this instance for now.
func (m *Muster) Known() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.open--; m.open == 0 {
		for l := range m.marks {
			l.wake()
		}
	}
}

// Join adds a lane: the others begin to wait for it. Wake makes the lane look again how far it may send; it may be
// called on any goroutine, and must not block.
func (m *Muster) Join(wake func()) *Member {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.marks == nil {
		m.marks = make(map[*Member]leader.Time)
	}
	l := &Member{of: m, wake: wake}
	m.marks[l], m.floor = leader.Time{}, leader.Time{}
	return l
}

// Say sets the mark of the lane, and returns up to which due time the lane may send.
func (l *Member) Say(mark leader.Time) leader.Time {
	m := l.of
	m.mu.Lock()
	defer m.mu.Unlock()
	m.marks[l] = mark
	m.settleLocked(l)
	if m.open > 0 || m.floor.IsZero() {
		return leader.Time{}
	}
	return m.floor.Add(Step)
}

// Leave removes the lane: the others wait for it no more.
func (l *Member) Leave() {
	m := l.of
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.marks, l)
	m.settleLocked(l)
}

// settleLocked computes the floor, and wakes the other lanes when it has risen.
func (m *Muster) settleLocked(by *Member) {
	var floor leader.Time
	first := true
	for _, mark := range m.marks {
		if first || mark.Before(floor) {
			floor, first = mark, false
		}
	}
	if floor = floor.Truncate(Step); !floor.After(m.floor) {
		m.floor = floor
		return
	}
	m.floor = floor
	for l := range m.marks {
		if l != by {
			l.wake()
		}
	}
}
