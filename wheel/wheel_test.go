package wheel

import (
	"slices"
	"testing"
	"time"
)

var (
	base   = time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)
	oldest = time.Unix(-9223372036, 0).UTC() // 1677-09-21T00:12:44Z
	latest = time.Unix(9223372036, 0).Add(-1).UTC()
)

func fired[V any](w *Wheel[V], now time.Time) []V {
	var vs []V
	for _, v := range w.Advance(now) {
		vs = append(vs, v)
	}
	return vs
}

func checkFired(t testing.TB, w *Wheel[int], now time.Time, want []int) {
	t.Helper()
	if got := fired(w, now); !slices.Equal(got, want) {
		t.Errorf("Advance(%v): got %v, want %v", now, got, want)
	}
}

func (w *Wheel[V]) checkRemove(t testing.TB, h Handle, want bool) {
	t.Helper()
	if got := w.Remove(h); got != want {
		t.Errorf("Remove(%v): got %t, want %t", h, got, want)
	}
}

var year9999 = time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.UTC)

// dueTimes are due times, with the times at which their entries fire.
var dueTimes = []struct {
	name string
	from time.Time // the due time of an earlier entry, to which the edge moves
	due  time.Time
	want time.Time // zero if the entry never fires
}{
	{"one nanosecond ahead", base, base.Add(1), base.Add(1)},
	{"last of the lowest ring", base, base.Truncate(64).Add(63), base.Truncate(64).Add(63)},
	{"next slot of a ring", base, base.Truncate(64).Add(64), base.Truncate(64).Add(64)},
	{"a second and a nanosecond", base, base.Add(time.Second + 1), base.Add(time.Second + 1)},
	{"a hundred years", base, base.AddDate(100, 0, 0), base.AddDate(100, 0, 0)},
	{"now", base, base, base},
	{"past", base, base.Add(-time.Hour - 1), base.Add(-time.Hour - 1)},
	{"last of the year 1969", base, time.Unix(0, -1), time.Unix(0, -1)},
	{"1970", base, time.Unix(0, 0), time.Unix(0, 0)},
	{"from before 1970", time.Unix(-5, 0), time.Unix(0, 1), time.Unix(0, 1)},
	{"another zone", base, base.Add(1).In(time.FixedZone("", 3600)), base.Add(1)},
	{"oldest", base, oldest, oldest},
	{"just before the oldest", base, oldest.Add(-1), oldest},
	{"zero time", base, time.Time{}, oldest},
	{"zero time, from the zero time", time.Time{}, time.Time{}, oldest},
	{"latest", base, latest, latest},
	{"just after the latest", base, latest.Add(1), time.Time{}},
	{"year 9999", base, year9999, time.Time{}},
	{"beyond UnixNano in the year 9999", year9999, year9999, time.Time{}},
}

// TestDueToTheNanosecond: an entry does not fire one nanosecond before its due time, and fires at its due time, which
// Next returns.
func TestDueToTheNanosecond(t *testing.T) {
	for _, tt := range dueTimes {
		t.Run(tt.name, func(t *testing.T) {
			w := New[string]()
			w.Add(tt.from, "earlier")
			fired(w, tt.from)
			h := w.Add(tt.due, "v")
			w.check(t)

			next, ok := w.Next()
			if got, want := next, tt.want; !got.Equal(want) {
				t.Errorf("Next: got %v, want %v", got, want)
			}
			if got, want := ok, !tt.want.IsZero(); got != want {
				t.Errorf("Next: got %t, want %t", got, want)
			}
			if !ok {
				if got := fired(w, year9999); got != nil {
					t.Errorf("Advance: got %v, which is never due", got)
				}
				w.checkRemove(t, h, true)
				return
			}
			if got := fired(w, next.Add(-1)); got != nil {
				t.Errorf("Advance one nanosecond early: got %v", got)
			}
			var due time.Time
			for due = range w.Advance(next) {
			}
			if got, want := due, tt.want; !got.Equal(want) {
				t.Errorf("Advance: got %v, want %v", got, want)
			}
			if got, want := w.Len(), 0; got != want {
				t.Errorf("Len: got %d, want %d", got, want)
			}
			w.check(t)
		})
	}
}

// TestEmpty: an empty wheel yields nothing and has no next due time.
func TestEmpty(t *testing.T) {
	w := New[int]()
	if got, ok := w.Next(); ok {
		t.Errorf("Next: got %v, want none", got)
	}
	if got := fired(w, base); got != nil {
		t.Errorf("Advance: got %v, want none", got)
	}
	w.checkRemove(t, Handle{}, false)
	w.Add(base, 1)
	w.checkRemove(t, Handle{}, false)
	w.checkRemove(t, Handle{serial: 1, cell: 9}, false)
}

// TestOneInstantKeepsInsertionOrder: many entries with one due time are yielded in the order of insertion, even if the
// edge reaches the due time between the insertions.
func TestOneInstantKeepsInsertionOrder(t *testing.T) {
	w := New[int]()
	due := base.Add(time.Second)
	for i := range 1000 {
		w.Add(due, i)
	}
	w.Add(due.Add(-1), -1)
	w.check(t)
	checkFired(t, w, due.Add(-1), []int{-1})
	w.Next() // moves the edge
	for i := range 1000 {
		w.Add(due, 1000+i)
	}
	w.check(t)
	got := fired(w, due)
	if len(got) != 2000 || !slices.IsSorted(got) {
		t.Errorf("got %v, want 0 to 1999", got)
	}
}

// TestHandleAfterReuse: a handle identifies only its own entry, even if a new entry uses the same cell of the slab.
func TestHandleAfterReuse(t *testing.T) {
	w := New[int]()
	a := w.Add(base, 1)
	w.checkRemove(t, a, true)
	w.checkRemove(t, Handle{}, false)
	b := w.Add(base, 2)
	if got, want := b.cell, a.cell; got != want {
		t.Fatalf("cell: got %d, want the freed one, %d", got, want)
	}
	if a == b {
		t.Error("two entries have one handle")
	}
	w.checkRemove(t, a, false)
	checkFired(t, w, base, []int{2})
	w.checkRemove(t, b, false)
}
