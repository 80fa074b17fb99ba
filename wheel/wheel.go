package wheel

import (
	"iter"
	"time"
)

// A Wheel holds values until they are due, and gives them back in the order of their due times, those of one due time
// in the order in which they were added.
//
// It has no clock, no goroutine and no lock. The owner passes the time, and only one goroutine may use the wheel at a
// time.
//
// Its calendar is the one of [time.Time.UnixNano], in whole seconds, and reads the wall clock of a time, never the
// monotonic one. A due time before 1677-09-21T00:12:44Z counts as that instant, before which nothing fires. A due time
// from 2262-04-11T23:47:16Z on never comes: its entry counts in Len and can be removed, but Next and Advance pass it
// over.
type Wheel[V any] struct {
	slab  slab[V]
	order order
}

// New returns an empty wheel.
func New[V any]() *Wheel[V] {
	return new(Wheel[V])
}

// Add puts v into the wheel until due, which may lie in the past. The handle is good for Remove until v leaves the
// wheel.
func (w *Wheel[V]) Add(due time.Time, v V) Handle {
	h := w.slab.add(v)
	w.order.add(item{due: max(instantOf(due), firstInstant), handle: h})
	return h
}

// Remove takes an entry out before it fires. It returns false for an entry which has fired or been removed, and for the
// zero Handle. A handle of another wheel may name any entry of this one.
func (w *Wheel[V]) Remove(h Handle) bool {
	if _, ok := w.slab.take(h); !ok {
		return false
	}
	if w.order.len > 2*w.slab.len+sweepAbove {
		w.order.sweep(w.slab.has)
	}
	return true
}

// Len returns the number of entries.
func (w *Wheel[V]) Len() int {
	return w.slab.len
}

// Next returns the earliest instant at which Advance yields something. That is the earliest due time, to the
// nanosecond, in UTC. It returns false if Advance never will.
func (w *Wheel[V]) Next() (time.Time, bool) {
	for {
		it := w.order.peek()
		if it == nil || it.due == never {
			return time.Time{}, false
		}
		if w.slab.has(it.handle) {
			return it.due.time(), true
		}
		w.order.pop()
	}
}

// Advance takes out every entry which is due at now or earlier, and yields its due time, in UTC, with its value. Now
// may be earlier than it was in the call before.
//
// An entry has left the wheel when the body gets it. If the body breaks or panics, those it has not got stay, for the
// next Advance.
//
// The body may use the wheel. An entry which it adds comes in this same pass if it is due, in its place among those not
// yet yielded; so a body which adds a due one for each it gets has no end. An entry which it removes does not come. An
// Advance within the body takes the entries due at its own now, and the outer one goes on with the rest.
func (w *Wheel[V]) Advance(now time.Time) iter.Seq2[time.Time, V] {
	// No more than this, so that the compiler inlines it: otherwise each call allocates its closure.
	return func(yield func(time.Time, V) bool) {
		w.advance(now, yield)
	}
}

func (w *Wheel[V]) advance(now time.Time, yield func(time.Time, V) bool) {
	limit := min(instantOf(now), never-1)
	for {
		it := w.order.peek()
		if it == nil || it.due > limit {
			return
		}
		due, h := it.due, it.handle
		w.order.pop()
		if v, ok := w.slab.take(h); ok && !yield(due.time(), v) {
			return
		}
	}
}
