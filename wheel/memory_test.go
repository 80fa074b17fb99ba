package wheel

import (
	"math/rand/v2"
	"runtime"
	"testing"
	"time"
)

// TestNoAllocation: under a steady load, the wheel stops allocating.
func TestNoAllocation(t *testing.T) {
	const pending = 1000
	w := New[int]()
	now := base
	r := rand.New(rand.NewPCG(1, 2))
	second := func() {
		for range pending {
			w.Add(now.Add(time.Duration(r.Int64N(int64(time.Second)))), 1)
			w.Remove(w.Add(now.Add(time.Second), 2))
			now = now.Add(time.Second / pending)
			w.Next()
			for range w.Advance(now) {
			}
		}
	}
	for range 60 {
		second()
	}
	if got, want := testing.AllocsPerRun(10, second), 0.0; got != want {
		t.Errorf("allocations in a second: got %v, want %v", got, want)
	}
	w.check(t)
}

// TestRemovedAreSweptOut: a bounded number of items of removed entries stays in the wheel, even without an Advance.
func TestRemovedAreSweptOut(t *testing.T) {
	w := New[int]()
	w.Add(base, 1)
	w.Next() // moves the edge to base: entries that are due before it go into the heap
	w.Add(base.Add(-1), 0)
	w.Add(base.Add(time.Hour), 2)
	for _, due := range []time.Time{base.Add(-1), base.Add(time.Hour)} {
		for range 3 * minSweep {
			w.Remove(w.Add(due, 9))
			if got, want := w.order.len, 2*w.Len()+minSweep; got > want {
				t.Fatalf("items: got %d, want at most %d", got, want)
			}
		}
		w.check(t)
	}
	checkFired(t, w, latest, []int{0, 1, 2})
}

// TestMemoryIsGivenBack: after bursts of entries with different and with equal due times, in the rings and in the heap,
// the wheel keeps little memory, even if some entries stay.
func TestMemoryIsGivenBack(t *testing.T) {
	const burst, stay = 100_000, 5
	w := New[int]()
	w.Add(base, 0)
	w.Next() // moves the edge to base: entries that are due before it go into the heap
	for i := range burst {
		w.Add(base.Add(-time.Duration(i+1)), 1)
		w.Add(base.Add(time.Second), 2)
		w.Add(base.Add(time.Second+time.Duration(i)), 3)
		if i%(burst/stay) == 0 {
			w.Add(base.Add(time.Hour), 4)
		}
	}
	for range w.Advance(base.Add(time.Minute)) {
	}
	w.check(t)
	pages := 0
	for _, p := range w.slab.pages {
		if p != nil {
			pages++
		}
	}
	if w.Len() != stay || pages > stay || cap(w.order.run) > keptItems || cap(w.order.heap) > keptItems {
		t.Errorf("%d entries stay, in %d pages; the run has room for %d items, and the heap for %d", w.Len(), pages,
			cap(w.order.run), cap(w.order.heap))
	}
}

// TestValuesAreCollected: the wheel keeps no reference to a value that has fired or was removed.
func TestValuesAreCollected(t *testing.T) {
	w := New[*[64]byte]()
	collected := make(chan string, 2)
	add := func(name string) Handle {
		v := new([64]byte)
		runtime.AddCleanup(v, func(name string) { collected <- name }, name)
		return w.Add(base, v)
	}
	w.Add(base.Add(time.Hour), new([64]byte))
	add("fired")
	for range w.Advance(base) {
	}
	w.Remove(add("removed"))
	want := map[string]bool{"fired": true, "removed": true}
	for len(want) > 0 {
		runtime.GC()
		select {
		case name := <-collected:
			delete(want, name)
		case <-time.After(10 * time.Second):
			t.Fatalf("still referenced: %v", want)
		}
	}
	for _, p := range append(w.slab.pages, w.slab.spare) {
		for i := range pageLen {
			if p != nil && p.cells[i].serial == 0 && p.cells[i].value != nil {
				t.Errorf("cell %d is free and has a value", i)
			}
		}
	}
	runtime.KeepAlive(w)
}
