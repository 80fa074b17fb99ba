package history

import (
	"reflect"
	"slices"
	"testing"
	"time"
)

var (
	noon   = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	bounds = []time.Duration{time.Millisecond, 10 * time.Millisecond, time.Second}
)

// addSteps adds steps with the same number of deliveries, beginning at from. Every tenth delivery is 5 ms late.
func addSteps(b *Book, from time.Time, steps int, each uint64) {
	c := b.lastCounts
	b.Add(from, true, c)
	for i := range steps {
		late := slices.Clone(c.Late)
		if late == nil {
			late = make([]uint64, len(bounds)+1)
		}
		late[0] += each - each/10
		late[1] += each / 10
		c = Counts{Delivered: c.Delivered + each, Refused: c.Refused + 1, Late: late, Pending: uint64(i)}
		b.Add(from.Add(time.Duration(i+1)*FineStep).Add(30*time.Millisecond), true, c)
	}
}

func TestBookKeepsAnHour(t *testing.T) {
	var b Book
	addSteps(&b, noon, 500, 100)
	s := b.Hour(noon.Add(500 * FineStep))
	if got, want := len(s.Delivered), 360; got != want {
		t.Fatalf("got %d steps, want %d", got, want)
	}
	if got, want := s.From, noon.Add(140*FineStep).Unix(); got != want {
		t.Errorf("the series begins at %d, want %d", got, want)
	}
	for i, n := range s.Delivered {
		if n != 100 || s.Refused[i] != 1 || s.Pending[i] != int64(140+i) {
			t.Fatalf("step %d: got %d delivered, %d refused, %d pending; want 100, 1, %d", i, n, s.Refused[i], s.Pending[i],
				140+i)
		}
	}
}

// TestBookKeepsADay: the day's ring has the same deliveries in steps of five minutes. No delivery is missing between
// two steps or in the current step.
func TestBookKeepsADay(t *testing.T) {
	var b Book
	addSteps(&b, noon, 45, 100)
	s := b.Day(noon.Add(45 * FineStep))
	last := len(s.Delivered) - 1
	if s.Delivered[last] != 1500 || s.Delivered[last-1] != 3000 || s.Delivered[last-2] != Unknown {
		t.Errorf("got %v, want an unknown step, 3000 and 1500 at the end", s.Delivered[last-3:])
	}
	if got, want := s.Step, 300; got != want {
		t.Errorf("got steps of %d s, want %d", got, want)
	}
}

// TestBookShowsGaps: a step without a call of Add is unknown, and not zero. A ring does not return steps that are older
// than its length.
func TestBookShowsGaps(t *testing.T) {
	var b Book
	addSteps(&b, noon, 10, 100)
	s := b.Hour(noon.Add(15 * FineStep))
	if got := s.Delivered[len(s.Delivered)-6:]; !slices.Equal(got, []int64{100, -1, -1, -1, -1, -1}) {
		t.Errorf("got %v, want 100 and five unknown steps", got)
	}
	for _, n := range b.Hour(noon.Add(500 * FineStep)).Delivered {
		if n != Unknown {
			t.Fatalf("got %d for a step without data, want %d", n, Unknown)
		}
	}
}

// TestBookAfterRestart: after a restart, the counters begin at zero, and their increase is counted from zero.
func TestBookAfterRestart(t *testing.T) {
	var b Book
	addSteps(&b, noon, 10, 100)
	b.Add(noon.Add(11*FineStep), true, Counts{Delivered: 7, Late: make([]uint64, len(bounds)+1)})
	s := b.Hour(noon.Add(11 * FineStep))
	if got := s.Delivered[len(s.Delivered)-2:]; !slices.Equal(got, []int64{100, 7}) {
		t.Errorf("got %v, want 100 and 7", got)
	}
}

// TestBookMerges: a stand-by has the steps of the active instance, and adds none. After it has taken over, it continues
// the history, and its counts begin at the take-over.
func TestBookMerges(t *testing.T) {
	var active, standBy Book
	addSteps(&active, noon, 10, 100)
	now := noon.Add(10 * FineStep)
	standBy.Add(now, false, Counts{Delivered: 1000})
	for range 2 { // the second merge changes nothing
		standBy.Merge(active.Hour(now), active.Day(now))
		standBy.Merge(Series{}, Series{Step: 7, Delivered: []int64{1}, Refused: []int64{1}, Pending: []int64{1}})
	}
	if got, want := standBy.Hour(now), active.Hour(now); !reflect.DeepEqual(got, want) {
		t.Errorf("the hour is %v, want %v", got, want)
	}
	if got, want := standBy.Day(now), active.Day(now); !reflect.DeepEqual(got, want) {
		t.Errorf("the day is %v, want %v", got, want)
	}
	standBy.Add(now.Add(FineStep), true, Counts{Delivered: 1040})
	standBy.Merge(active.Hour(now), active.Day(now)) // the older figures of the predecessor
	s, day := standBy.Hour(now.Add(FineStep)), standBy.Day(now.Add(FineStep))
	if got := s.Delivered[len(s.Delivered)-3:]; !slices.Equal(got, []int64{100, 100, 40}) {
		t.Errorf("after the take-over: got %v, want 100, 100, 40", got)
	}
	if got := day.Delivered[len(day.Delivered)-1]; got != 1040 {
		t.Errorf("the current step of the day has %d, want 1040", got)
	}
}

func TestQuantile(t *testing.T) {
	for _, test := range []struct {
		late  []uint64
		share float64
		want  time.Duration
		ok    bool
	}{
		{nil, 0.5, 0, false},
		{[]uint64{0, 0, 0, 0}, 0.5, 0, false},
		{[]uint64{100, 0, 0, 0}, 0.5, 500 * time.Microsecond, true},
		{[]uint64{90, 10, 0, 0}, 0.95, 5500 * time.Microsecond, true},
		{[]uint64{0, 0, 0, 7}, 0.99, time.Second, true}, // a lower bound
		{[]uint64{1, 1, 1, 1, 1, 1, 1}, 0.99, time.Second, true},
	} {
		if got, ok := Quantile(test.late, bounds, test.share); got != test.want || ok != test.ok {
			t.Errorf("%v of %v: got %v %v, want %v %v", test.share, test.late, got, ok, test.want, test.ok)
		}
	}
}
