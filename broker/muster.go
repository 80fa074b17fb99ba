package broker

import (
	"sync"
	"time"
)

// musterStep bounds the disorder between lanes: a message may go out before one of another lane that is due earlier by
// no more than this.
const musterStep = 100 * time.Millisecond

// muster brings the backlogs of several lanes into one order. Each lane has a mark: the earliest due time of the
// messages that it can send or may still read. No lane sends a message that is due more than musterStep after the
// oldest mark. How long the others wait for a lane that makes no progress is decided by each of them: see backlogWait.
//
// One target gets its messages in this order. Of several targets, one that has its share outstanding waits for its own
// answers (see package deliver), and messages to the others overtake those that wait. If marks were held back until the
// targets have answered, all lanes would wait, at each step, for the slowest target.
//
// The zero muster is ready to use.
type muster struct {
	mu    sync.Mutex
	marks map[*backlog]leaderTime // zero for a lane that has read nothing yet
	floor leaderTime              // the oldest mark, rounded down to a step
	open  int                     // lanes for which it is not known yet whether this instance works them
}

// expect announces lanes for which it is not known yet whether they will join. Until it is known of all of them, no
// lane sends.
func (m *muster) expect(lanes int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.open += lanes
}

// known says that one of these lanes has joined, or is not worked by this instance for now.
func (m *muster) known() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.open--; m.open == 0 {
		for b := range m.marks {
			b.wake()
		}
	}
}

// join adds a lane: the others begin to wait for it.
func (m *muster) join(b *backlog) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.marks == nil {
		m.marks = make(map[*backlog]leaderTime)
	}
	m.marks[b], m.floor = leaderTime{}, leaderTime{}
}

// say sets the mark of a lane, and returns up to which due time the lane may send.
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

// leave removes a lane: the others wait for it no more.
func (m *muster) leave(b *backlog) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.marks, b)
	m.settleLocked(b)
}

// settleLocked computes the floor, and wakes the other lanes when it has risen.
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
