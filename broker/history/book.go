package history

import (
	"sync"
	"time"
)

// The rings of a book.
const (
	Fine       = 10 * time.Second
	fineSteps  = 360
	coarse     = 5 * time.Minute
	coarseSize = 288
)

// Counts are what an instance has counted since it started, and what it holds now.
type Counts struct {
	Delivered, Refused uint64
	Late               []uint64 // deliveries by bucket of lateness, each without those before
	Pending            uint64
}

// Book is the history of one instance. It is safe for concurrent use. The zero value is an empty one.
type Book struct {
	mu    sync.Mutex // guards what follows
	begun bool
	last  Counts
	hour  ring
	day   ring
}

// Add notes the counts as they are now, at the end of a step of ten seconds. The first call only says where they begin.
func (b *Book) Add(now time.Time, c Counts) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.begun {
		b.begun, b.last = true, c
		b.hour, b.day = newRing(Fine, fineSteps), newRing(coarse, coarseSize)
		return
	}
	s := step{
		delivered: since(b.last.Delivered, c.Delivered), refused: since(b.last.Refused, c.Refused), pending: c.Pending,
	}
	for i, n := range c.Late {
		if i < len(b.last.Late) {
			n = since(b.last.Late[i], n)
		}
		s.late = append(s.late, n)
	}
	b.last = c
	in := now.Add(-Fine / 2) // the caller is late by a little, or early
	b.hour.add(in, s)
	b.day.add(in, s)
}

// since is what was counted since a look. A count that has fallen began anew.
func since(before, now uint64) uint64 {
	if now < before {
		return now
	}
	return now - before
}

// Hour is the last hour, in steps of ten seconds: those that have ended before now.
func (b *Book) Hour(now time.Time) Series { return b.read(&b.hour, now) }

// Day is the last day, in steps of five minutes. The last step is the one that has begun.
func (b *Book) Day(now time.Time) Series { return b.read(&b.day, now) }

func (b *Book) read(r *ring, now time.Time) Series {
	b.mu.Lock()
	defer b.mu.Unlock()
	return r.read(now)
}

// A step is what happened in one.
type step struct {
	number             int64 // since 1970
	delivered, refused uint64
	pending            uint64 // at its end
	late               []uint64
}

// A ring holds the last steps of one length. A place whose step has another number is an old one.
type ring struct {
	length time.Duration
	steps  []step
}

func newRing(length time.Duration, size int) ring { return ring{length, make([]step, size)} }

func (r *ring) number(t time.Time) int64 { return t.UnixNano() / int64(r.length) }

func (r *ring) add(at time.Time, s step) {
	s.number = r.number(at)
	into := &r.steps[s.number%int64(len(r.steps))]
	if into.number != s.number {
		*into = step{number: s.number, late: make([]uint64, len(s.late))}
	}
	into.delivered += s.delivered
	into.refused += s.refused
	into.pending = s.pending
	for i, n := range s.late {
		into.late[i] += n
	}
}

// read also returns the coarse step that has begun: without it, the last five minutes of a day would be missing.
func (r *ring) read(now time.Time) Series {
	size := int64(len(r.steps))
	if size == 0 {
		return Series{}
	}
	first := r.number(now) - size
	if r.length > Fine {
		first++
	}
	s := newSeries(r.length, first, len(r.steps))
	for i := range r.steps {
		n := first + int64(i)
		if from := &r.steps[n%size]; from.number == n {
			s.Delivered[i], s.Refused[i] = int64(from.delivered), int64(from.refused)
			s.Pending[i], s.Late[i] = int64(from.pending), append([]uint64(nil), from.late...)
		}
	}
	return s
}
