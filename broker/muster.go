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
//
// One target gets its messages in this order. Of several, one that has its share outstanding waits for its own answers (see
// package deliver), and what is sent to the others meanwhile comes before what waits: if a mark were held back until the
// targets have answered, all lanes would wait, at each step, for the slowest target.
type muster struct {
	mu    sync.Mutex
	marks map[*worker]time.Time // zero where nothing has been read yet
	floor time.Time             // the oldest, rounded down to a step
	open  int                   // lanes of which it is not known yet whether they are to be worked here
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
		for w := range m.marks {
			w.wake()
		}
	}
}

// join begins to wait for a lane.
func (m *muster) join(w *worker) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.marks == nil {
		m.marks = make(map[*worker]time.Time)
	}
	m.marks[w], m.floor = time.Time{}, time.Time{}
}

// say tells what a lane has come to, and returns up to when it may send what is due.
func (m *muster) say(w *worker, mark time.Time) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.marks[w] = mark
	m.settleLocked(w)
	if m.open > 0 || m.floor.IsZero() {
		return time.Time{}
	}
	return m.floor.Add(musterStep)
}

// leave ends the waiting for a lane.
func (m *muster) leave(w *worker) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.marks, w)
	m.settleLocked(w)
}

// settleLocked finds the floor anew, and wakes the others when it has risen.
func (m *muster) settleLocked(by *worker) {
	var floor time.Time
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
	for w := range m.marks {
		if w != by {
			w.wake()
		}
	}
}
