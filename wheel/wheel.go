package wheel

import (
	"iter"
	"time"
)

// A Wheel holds values until they are due, and returns them in the order of their due times. Values with the same due
// time come in the order in which they were added.
//
// A Wheel has no clock, no goroutine and no lock. The owner passes the time, and only one goroutine at a time may use
// the wheel.
//
// A Wheel uses the wall clock of a time, and ignores a monotonic reading. Its range is the range of
// [time.Time.UnixNano], in whole seconds. A due time before 1677-09-21T00:12:44Z counts as that time. An entry with a
// due time of 2262-04-11T23:47:16Z or later never fires. The entry counts in Len and can be removed, but Next and
// Advance skip it.
type Wheel[V any] struct {
	slab  slab[V]
	order order
}

// New returns an empty wheel.
func New[V any]() *Wheel[V] {
	return new(Wheel[V])
}

// Add puts v into the wheel until due, which may be in the past. The handle is valid for Remove until v leaves the
// wheel.
func (w *Wheel[V]) Add(due time.Time, v V) Handle {
	h := w.slab.add(v)
	w.order.add(item{due: max(instantOf(due), firstInstant), handle: h})
	return h
}

// Remove removes an entry before it fires. It returns false if the entry has fired or was removed, and for the zero
// Handle. The handle must be from this wheel: a handle from another wheel may match any entry.
func (w *Wheel[V]) Remove(h Handle) bool {
	if _, ok := w.slab.take(h); !ok {
		return false
	}
	if w.order.len > 2*w.slab.len+minSweep {
		w.order.sweep(w.slab.has)
	}
	return true
}

// Len returns the number of entries.
func (w *Wheel[V]) Len() int {
	return w.slab.len
}

// Next returns the earliest due time, to the nanosecond, in UTC. It returns false if no entry will ever be due.
func (w *Wheel[V]) Next() (time.Time, bool) {
	for {
		it := w.order.peek()
		if it == nil || it.due == neverDue {
			return time.Time{}, false
		}
		if w.slab.has(it.handle) {
			return it.due.time(), true
		}
		w.order.pop()
	}
}

// Advance removes every entry that is due at now or earlier, and yields the entry's due time, in UTC, and value. Now
// may be earlier than in the previous call.
//
// An entry has left the wheel when the loop body gets it. If the body breaks or panics, the entries that were not
// yielded stay for the next Advance.
//
// The body may use the wheel. If the body adds an entry that is due, the same call of Advance yields the entry, in its
// place among the entries not yet yielded. So if the body adds a due entry for each entry, the loop never ends. An
// entry that the body removes is not yielded. An Advance inside the body removes the entries that are due at its own
// now, and the outer Advance continues with the remaining entries.
func (w *Wheel[V]) Advance(now time.Time) iter.Seq2[time.Time, V] {
	// The compiler inlines only a short function, and without inlining each call allocates the closure.
	return func(yield func(time.Time, V) bool) {
		w.advance(now, yield)
	}
}

func (w *Wheel[V]) advance(now time.Time, yield func(time.Time, V) bool) {
	limit := min(instantOf(now), neverDue-1)
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
