package wheel

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// A model predicts the results of a wheel from a sorted slice of the same entries.
type model struct {
	t       testing.TB
	wheel   *Wheel[int]
	now     time.Time
	entries []modelEntry // by due time, then insertion
	handles []Handle     // the index is the entry's value; includes entries that have left the wheel
	input   []byte       // the input that is not read yet
	rand    *rand.Rand   // has the same seed for each input
}

type modelEntry struct {
	due   time.Time
	value int
}

func TestModel(t *testing.T) {
	rounds := 300
	if testing.Short() {
		rounds = 30
	}
	for seed := range rounds {
		r := rand.New(rand.NewPCG(uint64(seed), 1))
		in := make([]byte, 600)
		for i := range in {
			in[i] = byte(r.Uint32())
		}
		run(t, in)
	}
}

func FuzzWheel(f *testing.F) {
	f.Add([]byte{0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10})
	f.Add([]byte{1, 200, 3, 1, 1, 90, 4, 2, 5, 7, 6, 1, 3, 60})
	f.Add([]byte{1, 255, 5, 1, 1, 255, 5, 2, 2, 255, 2, 255, 2, 255, 5, 5, 3, 9})
	f.Add([]byte{1, 80, 4, 7, 4, 3, 3, 0, 17, 33, 4, 250, 5, 4, 100})
	f.Fuzz(run)
}

// run performs the operations that the input encodes, and checks the whole wheel after each. That is slow, so run reads
// at most 600 bytes.
func run(t *testing.T, input []byte) {
	input = input[:min(len(input), 600)]
	m := &model{t: t, wheel: New[int](), now: base, input: input, rand: rand.New(rand.NewPCG(1, 2))}
	for len(m.input) > 0 {
		switch m.read() % 8 {
		case 0:
			m.add(m.due(m.read()))
		case 1: // many entries of one kind of due time
			n, kind := int(m.read()), m.read()
			for range n {
				m.add(m.due(kind&15 | byte(m.rand.Uint32())<<4))
			}
		case 2: // many removals; after many entries, they cause a sweep
			for range 8 * int(m.read()) {
				m.remove(int(m.rand.Uint32()))
			}
		case 3:
			m.remove(int(m.read()))
		case 4:
			m.advance(m.due(m.read()), 0)
		case 5:
			if due, ok := m.wheel.Next(); ok {
				m.advance(due, 0)
			}
		case 6:
			m.now = m.due(m.read())
		case 7: // the due time of another entry, or a nanosecond before or after
			if n := len(m.entries); n > 0 {
				offset := time.Duration(m.read()%3) - 1
				m.add(m.entries[int(m.read())%n].due.Add(offset))
			}
		}
		m.check()
	}
	m.advance(latest, 0)
	m.check()
}

func (m *model) read() byte {
	if len(m.input) == 0 {
		return 0
	}
	b := m.input[0]
	m.input = m.input[1:]
	return b
}

// due decodes a time: near m.now, years away, or near or beyond an end of the wheel's range.
func (m *model) due(b byte) time.Time {
	n := time.Duration(b >> 4)
	switch b % 16 {
	case 0:
		return m.now.Add(n - 8)
	case 1:
		return m.now.Add(n * 7)
	case 2:
		return m.now.Add(n * 333)
	case 3, 4:
		return m.now.Add(n * 71 * time.Microsecond)
	case 5, 6, 7:
		return m.now.Add(n * 63 * time.Millisecond)
	case 8:
		return m.now.Add(-n * time.Millisecond)
	case 9:
		return m.now.Add(n * time.Hour)
	case 10:
		return m.now.AddDate(int(n), 0, 0)
	case 11:
		return time.Unix(-int64(n)*1000, int64(n))
	case 12:
		return oldest.Add(n - 8)
	case 13:
		return latest.Add(n - 8)
	case 14:
		return time.Time{}.AddDate(int(n)*1000, 0, 0)
	}
	return m.now
}

func (m *model) add(due time.Time) {
	value := len(m.handles)
	m.handles = append(m.handles, m.wheel.Add(due, value))
	if due.Before(oldest) {
		due = oldest
	}
	if due.After(latest) {
		due = latest.Add(1)
	}
	i, _ := slices.BinarySearchFunc(m.entries, due, func(e modelEntry, due time.Time) int {
		if e.due.After(due) {
			return 1
		}
		return -1
	})
	m.entries = slices.Insert(m.entries, i, modelEntry{due, value})
}

func (m *model) remove(n int) {
	if len(m.handles) == 0 {
		return
	}
	value := n % len(m.handles)
	i := slices.IndexFunc(m.entries, func(e modelEntry) bool { return e.value == value })
	if got, want := m.wheel.Remove(m.handles[value]), i >= 0; got != want {
		m.t.Fatalf("Remove(%d): got %t, want %t", value, got, want)
	}
	if i >= 0 {
		m.entries = slices.Delete(m.entries, i, i+1)
	}
}

// advance compares every yielded entry with the model. The input chooses the operation of the loop's body. Depth is the
// number of enclosing calls of Advance.
func (m *model) advance(now time.Time, depth int) {
	for due, value := range m.wheel.Advance(now) {
		if !m.isDue(now) {
			m.t.Fatalf("Advance(%v): got %d, due %v, want none", now, value, due)
		}
		if got, want := value, m.entries[0].value; got != want {
			m.t.Fatalf("Advance(%v): got %d, due %v, want %d", now, got, due, want)
		}
		if got, want := due, m.entries[0].due; !got.Equal(want) {
			m.t.Fatalf("Advance(%v): got due %v, want %v", now, got, want)
		}
		m.entries = m.entries[1:]
		switch m.read() % 32 {
		case 1:
			return
		case 2, 3:
			m.add(m.due(m.read()))
		case 4:
			m.remove(int(m.read()))
		case 5:
			m.checkNext()
		case 6:
			if depth < 3 {
				m.advance(m.due(m.read()), depth+1)
			}
		case 7:
			m.check()
		}
	}
	if m.isDue(now) {
		m.t.Fatalf("Advance(%v): got none, want %d, due %v", now, m.entries[0].value, m.entries[0].due)
	}
	m.now = now
}

func (m *model) isDue(now time.Time) bool {
	return len(m.entries) > 0 && !m.entries[0].due.After(now) && !m.entries[0].due.After(latest)
}

func (m *model) check() {
	m.t.Helper()
	m.wheel.check(m.t)
	if got, want := m.wheel.Len(), len(m.entries); got != want {
		m.t.Fatalf("Len: got %d, want %d", got, want)
	}
	if m.read()%2 == 0 { // not always, because Next moves the edge
		m.checkNext()
	}
}

func (m *model) checkNext() {
	m.t.Helper()
	got, ok := m.wheel.Next()
	var want time.Time
	if len(m.entries) > 0 && !m.entries[0].due.After(latest) {
		want = m.entries[0].due
	}
	if !got.Equal(want) || ok != !want.IsZero() {
		m.t.Fatalf("Next: got %v, %t, want %v", got, ok, want)
	}
}
