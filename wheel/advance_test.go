package wheel

import (
	"slices"
	"testing"
	"time"
)

func at(n int) time.Time { return base.Add(time.Duration(n)) }

// bodies are bodies of a loop over Advance.
var bodies = []struct {
	name string
	body func(t *testing.T, w *Wheel[int], handles []Handle, v int) bool
	got  []int // the values that the loop gets from Advance(at(3)); the wheel has the values 0 to 4, due at(0) to at(4)
	rest []int // the values that Advance(at(9)) then yields
}{
	{
		name: "breaks",
		body: func(t *testing.T, w *Wheel[int], handles []Handle, v int) bool { return v < 1 },
		got:  []int{0, 1}, rest: []int{2, 3, 4},
	},
	{
		name: "adds what is due",
		body: func(t *testing.T, w *Wheel[int], handles []Handle, v int) bool {
			if v == 1 {
				w.Add(at(3), 13)
				w.Add(at(2), 12)
				w.Add(at(-9), 10) // due before the entries that have been yielded
			}
			return true
		},
		got: []int{0, 1, 10, 2, 12, 3, 13}, rest: []int{4},
	},
	{
		name: "adds what is not due",
		body: func(t *testing.T, w *Wheel[int], handles []Handle, v int) bool {
			if v == 3 {
				w.Add(at(4), 14)
			}
			return true
		},
		got: []int{0, 1, 2, 3}, rest: []int{4, 14},
	},
	{
		name: "removes",
		body: func(t *testing.T, w *Wheel[int], handles []Handle, v int) bool {
			w.checkRemove(t, handles[v], false)
			if v == 1 {
				for _, h := range []Handle{handles[2], handles[4]} {
					w.checkRemove(t, h, true)
				}
			}
			return true
		},
		got: []int{0, 1, 3}, rest: nil,
	},
	{
		name: "asks",
		body: func(t *testing.T, w *Wheel[int], handles []Handle, v int) bool {
			if got, want := w.Len(), 4-v; got != want {
				t.Errorf("Len: got %d, want %d", got, want)
			}
			if got, ok := w.Next(); !got.Equal(at(v+1)) || !ok {
				t.Errorf("Next: got %v, %t, want %v", got, ok, at(v+1))
			}
			return true
		},
		got: []int{0, 1, 2, 3}, rest: []int{4},
	},
	{
		name: "advances",
		body: func(t *testing.T, w *Wheel[int], handles []Handle, v int) bool {
			if v == 0 {
				checkFired(t, w, at(2), []int{1, 2})
			}
			return true
		},
		got: []int{0, 3}, rest: []int{4},
	},
}

func TestBody(t *testing.T) {
	for _, tt := range bodies {
		t.Run(tt.name, func(t *testing.T) {
			w := New[int]()
			var handles []Handle
			for i := range 5 {
				handles = append(handles, w.Add(at(i), i))
			}
			var got []int
			for _, v := range w.Advance(at(3)) {
				got = append(got, v)
				ok := tt.body(t, w, handles, v)
				w.check(t)
				if !ok {
					break
				}
			}
			if want := tt.got; !slices.Equal(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
			checkFired(t, w, at(9), tt.rest)
		})
	}
}

// TestBodyPanics: if a body panics, its entry has left the wheel, and the other entries stay.
func TestBodyPanics(t *testing.T) {
	w := New[int]()
	w.Add(base, 1)
	w.Add(base, 2)
	func() {
		defer func() { recover() }()
		for range w.Advance(base) {
			panic("body")
		}
	}()
	w.check(t)
	checkFired(t, w, base, []int{2})
}

// TestAdvanceTwice: the iterator of one Advance may be used again, and then yields the entries that were added after
// the first use.
func TestAdvanceTwice(t *testing.T) {
	w := New[int]()
	seq := w.Advance(base)
	for i := range 2 {
		w.Add(base, i)
		for _, v := range seq {
			if got, want := v, i; got != want {
				t.Errorf("got %d, want %d", got, want)
			}
		}
		if got, want := w.Len(), 0; got != want {
			t.Errorf("Len: got %d, want %d", got, want)
		}
	}
}
