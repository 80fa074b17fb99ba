package broker

import (
	"sync"
	"time"
)

// musterStep is how far apart in their order two messages of different lanes may be, in terms of when they were due.
const musterStep = 100 * time.Millisecond

// muster brings the backlogs of several lanes into one order. Each lane says from when on it has something to send, or may
// yet read something, and none sends what is due more than musterStep after the oldest of these times. How long a lane
// that does not get on is waited for is the business of those who wait: see backlogWait. The zero muster is ready.
type muster struct {
	mu    sync.Mutex
	marks map[*backlog]leaderTime // zero where nothing has been read yet
	floor leaderTime              // the oldest, rounded down to a step
	open  int                     // lanes of which it is not known yet whether they are to be worked here
}

// expect says how many lanes are about to join, or not to. Until all of them have, nobody sends.
func (m *muster) expect(lanes int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.open += lanes
}

// known says that one of these has joined, or is not to be worked here for now.
func (m *muster) known() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.open--; m.open == 0 {
		for b := range m.marks {
			b.wake()
		}
	}
}

// join begins to wait for a lane.
func (m *muster) join(b *backlog) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.marks == nil {
		m.marks = make(map[*backlog]leaderTime)
	}
	m.marks[b], m.floor = leaderTime{}, leaderTime{}
}

// say tells what a lane has come to, and returns up to when it may send what is due.
func (m *muster) say(b *backlog, mark leaderTime) leaderTime {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.marks[b] = mark
	m.settleLocked(b)
	if m.open > 0 || m.floor.IsZero() {
		return leaderTime{}
	}
	return m.floor.Add(musterStep)
}

// leave ends the waiting for a lane.
func (m *muster) leave(b *backlog) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.marks, b)
	m.settleLocked(b)
}

// settleLocked finds the floor anew, and wakes the others when it has risen.
func (m *muster) settleLocked(by *backlog) {
	var floor leaderTime
	first := true
	for _, mark := range m.marks {
		if first || mark.Before(floor) {
			floor, first = mark, false
		}
	}
	if floor = floor.Truncate(musterStep); !floor.After(m.floor) {
		m.floor = floor
		return
	}
	m.floor = floor
	for b := range m.marks {
		if b != by {
			b.wake()
		}
	}
}
