package history

import (
	"slices"
	"sync"
	"time"
)

const (
	FineStep    = 10 * time.Second // length of a step in the hour's ring
	fineSteps   = 360
	coarseStep  = 5 * time.Minute // length of a step in the day's ring
	coarseSteps = 288
)

// Counts has the counters of the active instance since its start, and its number of pending messages.
type Counts struct {
	Delivered, Refused uint64
	Late               []uint64 // deliveries by bucket of lateness; each delivery counts in one bucket
	Pending            uint64   // current number
}

// Book is the history of the fleet. It is safe for concurrent use. The zero Book is empty and ready to use.
type Book struct {
	mu         sync.Mutex // guards the fields below
	lastCounts Counts
	counted    bool // lastCounts is set
	hour       ring
	day        ring
}

// Add records the current counts of this instance, if it is active. The caller calls it at the end of each step of ten
// seconds. The first call only sets the starting values.
func (b *Book) Add(now time.Time, active bool, c Counts) {
	b.mu.Lock()
	defer b.mu.Unlock()
	first := !b.counted
	b.init()
	b.counted = true
	if first || !active {
		b.lastCounts = c
		return
	}
	s := step{
		delivered: increase(b.lastCounts.Delivered, c.Delivered), refused: increase(b.lastCounts.Refused, c.Refused),
		pending: c.Pending,
	}
	for i, n := range c.Late {
		if i < len(b.lastCounts.Late) {
			n = increase(b.lastCounts.Late[i], n)
		}
		s.lateness = append(s.lateness, n)
	}
	b.lastCounts = c
	middle := now.Add(-FineStep / 2) // lies in the ended step, even if the call is slightly late or early
	b.hour.add(middle, s)
	b.day.add(middle, s)
}

func (b *Book) init() {
	if b.hour.steps == nil {
		b.hour, b.day = newRing(FineStep, fineSteps), newRing(coarseStep, coarseSteps)
	}
}

// Merge records the steps of another instance's history of the last hour and of the last day. A step that both know
// keeps the higher counts: a step of the day grows for five minutes.
func (b *Book) Merge(hour, day Series) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.init()
	b.hour.merge(hour)
	b.day.merge(day)
}

// increase returns the increase of a counter. A counter that has fallen began again at zero, in another broker with the
// same Book.
func increase(previous, current uint64) uint64 {
	if current < previous {
		return current
	}
	return current - previous
}

// Hour returns the last hour in steps of ten seconds, up to the last step that has ended.
func (b *Book) Hour(now time.Time) Series { return b.read(&b.hour, now) }

// Day returns the last day in steps of five minutes, including the current step.
func (b *Book) Day(now time.Time) Series { return b.read(&b.day, now) }

// A step has the counts of one interval. All intervals of a ring have the same length.
type step struct {
	number             int64 // number of steps since 1970
	delivered, refused uint64
	pending            uint64   // pending messages at the end of the step
	lateness           []uint64 // deliveries by bucket of lateness
}

// A ring has the most recent steps of one length. Step n is at index n modulo the size. If an older step is still at
// that index, step n is unknown.
type ring struct {
	length time.Duration
	steps  []step
}

func newRing(length time.Duration, size int) ring { return ring{length, make([]step, size)} }

func (r *ring) number(t time.Time) int64 { return t.UnixNano() / int64(r.length) }

func (r *ring) add(t time.Time, s step) {
	s.number = r.number(t)
	sum := &r.steps[s.number%int64(len(r.steps))]
	if sum.number != s.number {
		*sum = step{number: s.number, lateness: make([]uint64, len(s.lateness))}
	}
	sum.delivered += s.delivered
	sum.refused += s.refused
	sum.pending = s.pending
	for i, n := range s.lateness {
		sum.lateness[i] += n
	}
}

func (r *ring) merge(other Series) {
	length := int64(r.length / time.Second)
	n := min(len(other.Delivered), len(other.Refused), len(other.Pending), len(other.Late), len(r.steps))
	if int64(other.Step) != length || other.From%length != 0 {
		return
	}
	for i := range n {
		if other.Delivered[i] == Unknown {
			continue
		}
		s := step{
			number: other.From/length + int64(i), delivered: uint64(other.Delivered[i]), refused: uint64(other.Refused[i]),
			pending: uint64(other.Pending[i]), lateness: slices.Clone(other.Late[i]),
		}
		known := &r.steps[s.number%int64(len(r.steps))]
		if known.number < s.number || known.number == s.number && known.delivered+known.refused <= s.delivered+s.refused {
			*known = s
		}
	}
}

// read returns the complete steps of a ring. In the day's ring it adds the current step, because otherwise up to five
// minutes would be missing.
func (b *Book) read(r *ring, now time.Time) Series {
	b.mu.Lock()
	defer b.mu.Unlock()
	size := int64(len(r.steps))
	if size == 0 {
		return Series{}
	}
	firstStep := r.number(now) - size
	if r.length > FineStep {
		firstStep++
	}
	s := newSeries(r.length, firstStep, len(r.steps))
	for i := range r.steps {
		n := firstStep + int64(i)
		if sum := &r.steps[n%size]; sum.number == n {
			s.Delivered[i], s.Refused[i] = int64(sum.delivered), int64(sum.refused)
			s.Pending[i], s.Late[i] = int64(sum.pending), slices.Clone(sum.lateness)
		}
	}
	return s
}
