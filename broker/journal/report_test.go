package journal

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// wrote is a batch, stored some time after the start.
type wrote struct {
	after time.Duration
	head
}

var began = time.Unix(0, 1795222624918700000).UTC()

func after(d time.Duration) time.Time { return began.Add(d) }

// mark returns a batch of an instance, without records.
func mark(d time.Duration, instance string, n uint64) wrote {
	return wrote{d, head{Instance: instance, Start: "1", Number: n, Before: n - 1}}
}

// ends returns the last batch of an instance.
func ends(w wrote) wrote {
	w.End = true
	return w
}

// lossy returns a batch that reports dropped records before it.
func lossy() wrote {
	w := mark(time.Minute, "a", 3)
	w.Before, w.Lost = 1, &span{7, after(time.Second).UnixNano(), after(2 * time.Second).UnixNano()}
	return w
}

// again returns the first batch of another start of an instance.
func again() wrote {
	w := mark(time.Minute, "a", 1)
	w.Start = "2"
	return w
}

const (
	killed  = "the last records of the instance are missing: it was killed or lost its connection"
	silent  = "the instance does not answer, and its last records are missing: it was killed or lost its connection"
	unknown = "unknown: the instance wrote nothing for a minute"
	stuck   = "not stored yet: the journal's stream stores nothing, or too little"
	nobody  = "no instance wrote: none ran, or none kept a journal"
	since   = "no instance wrote: none ran, or none keeps a journal"
	removed = "batches were removed, or a server lost them"
	dropped = "dropped: the journal's stream stored nothing, or too little"
)

// holes are batches of instances, with the holes between them.
var holes = []struct {
	name    string
	batches []wrote
	now     time.Duration
	want    []Hole
	copies  int
}{
	{"one that writes on", []wrote{mark(0, "a", 1), mark(time.Minute, "a", 2)}, 2 * time.Minute, nil, 0},
	{"the first ones are gone", []wrote{mark(0, "a", 17)}, time.Minute, nil, 0},
	{"one that ended", []wrote{mark(0, "a", 1), ends(mark(time.Minute, "a", 2)), mark(time.Minute, "b", 1),
		mark(2*time.Minute, "b", 2), mark(3*time.Minute, "b", 3), mark(4*time.Minute, "b", 4)}, 5 * time.Minute, nil, 0},
	{"killed", []wrote{mark(0, "a", 1), mark(0, "b", 1), mark(time.Minute, "b", 2), mark(2*time.Minute, "b", 3),
		mark(3*time.Minute, "b", 4)}, 3 * time.Minute,
		[]Hole{{Instance: "a", From: after(-maxStoreDelay), To: after(time.Minute + flushInterval), Why: killed}}, 0},
	{"killed, or not", []wrote{mark(0, "a", 1), mark(0, "b", 1), mark(time.Minute, "b", 2), mark(2*time.Minute, "b", 3)},
		deadAfter, []Hole{{Instance: "a", From: after(-maxStoreDelay), To: after(deadAfter), Why: unknown}}, 0},
	{"not yet", []wrote{mark(0, "a", 1)}, DoubtAfter, nil, 0},
	{"nobody wrote for a while", []wrote{ends(mark(0, "a", 1)), mark(deadAfter+1, "b", 1)}, deadAfter + 1,
		[]Hole{{From: began, To: after(deadAfter + 1), Why: nobody}}, 0},
	{"nobody could write for a while", []wrote{mark(0, "a", 1), mark(time.Hour, "a", 2)}, time.Hour, nil, 0},
	{"killed while nobody could write", []wrote{mark(0, "a", 1), mark(0, "b", 1), mark(time.Hour, "b", 2),
		mark(61*time.Minute, "b", 3), mark(62*time.Minute, "b", 4)}, 62 * time.Minute,
		[]Hole{{Instance: "a", From: after(-maxStoreDelay), To: after(time.Hour), Why: killed}}, 0},
	{"nobody writes", []wrote{ends(mark(0, "a", 1))}, time.Hour,
		[]Hole{{From: began, To: after(time.Hour), Why: since}}, 0},
	{"one is removed", []wrote{mark(0, "a", 1), mark(time.Minute, "a", 3)}, time.Minute,
		[]Hole{{Instance: "a", From: after(-maxStoreDelay), To: after(time.Minute), Why: removed}}, 0},
	{"records were dropped, with a batch that was given up", []wrote{mark(0, "a", 1), lossy()}, time.Minute,
		[]Hole{{Instance: "a", From: after(time.Second), To: after(2 * time.Second), Records: 7, Why: dropped}}, 0},
	{"given up, and stored all the same", []wrote{mark(0, "a", 1), mark(30*time.Second, "a", 2), lossy()}, time.Minute,
		[]Hole{{Instance: "a", From: after(time.Second), To: after(2 * time.Second), Records: 7, Why: dropped}}, 0},
	{"stored twice", []wrote{mark(0, "a", 1), mark(1, "a", 2), mark(2, "a", 2), mark(3, "a", 1), ends(mark(4, "a", 3)),
		mark(5, "a", 2)}, time.Minute, nil, 3},
	{"another start of the same name", []wrote{mark(0, "a", 1), ends(mark(1, "a", 2)), again()}, time.Minute, nil, 0},
}

// TestHoles: a report concludes the holes from the stored batches.
func TestHoles(t *testing.T) {
	for _, test := range holes {
		r, copies := newRuns(), 0
		var got []Hole
		hole := func(h Hole) { got = append(got, h) }
		for _, w := range test.batches {
			if !r.next(w.head, after(w.after), hole) {
				copies++
			}
		}
		r.silent(after(test.now), nil, hole)
		for i := range got {
			got[i].From, got[i].To = got[i].From.UTC(), got[i].To.UTC()
		}
		if !slices.Equal(got, test.want) || copies != test.copies {
			t.Errorf("%s: got %+v and %d copies, want %+v and %d", test.name, got, copies, test.want, test.copies)
		}
	}
}

// state returns the report of an instance about its writer.
func state(instance, start string) State { return State{Instance: instance, Start: start} }

// stuckSince returns the report of an instance that cannot store its records.
func stuckSince(s State, d time.Duration) State {
	s.Unstored, s.Since = 5, after(d)
	return s
}

// TestHolesByStates: the report also uses the states of running writers, with the records that they have not stored
// yet. The instance has written one batch, with a record of a tenth of a second before.
func TestHolesByStates(t *testing.T) {
	last := after(-100 * time.Millisecond)
	gone := func(to time.Duration) []Hole {
		return []Hole{{Instance: "a", From: last.Add(-maxStoreDelay), To: after(to), Why: silent}}
	}
	held := func(from, to time.Duration) []Hole {
		return []Hole{{Instance: "a", From: after(from), To: after(to), Records: 5, Why: stuck}}
	}
	for _, test := range []struct {
		name   string
		states []State
		now    time.Duration
		want   []Hole
	}{
		{"it has just written", []State{}, maxStoreDelay, nil},
		{"nobody runs", []State{}, maxStoreDelay + 1, gone(maxStoreDelay + 1)},
		{"another one runs", []State{state("b", "1")}, 10 * time.Second, gone(10 * time.Second)},
		{"it runs again", []State{state("a", "2")}, 10 * time.Second, gone(10 * time.Second)},
		{"a minute later", []State{state("a", "2")}, 2 * time.Minute, gone(time.Minute + flushInterval)},
		{"it runs", []State{state("b", "1"), state("a", "1")}, 10 * time.Second, nil},
		{"it is of an older version", []State{state("a", "")}, 10 * time.Second, nil},
		{"its last records wait", []State{stuckSince(state("a", "1"), 9*time.Second)}, 10 * time.Second, nil},
		{"records wait for longer", []State{stuckSince(state("a", "1"), 9*time.Second-1)}, 10 * time.Second,
			held(9*time.Second-1, 10*time.Second)},
		{"it never wrote", []State{state("a", "1"), stuckSince(state("a", "2"), 0)}, 10 * time.Second,
			held(0, 10*time.Second)},
	} {
		r := newRuns()
		var got []Hole
		hole := func(h Hole) { got = append(got, h) }
		r.next(head{Instance: "a", Start: "1", Number: 1, Records: 1, Last: last.UnixNano()}, began, hole)
		r.silent(after(test.now), test.states, hole)
		for i := range got {
			got[i].From, got[i].To = got[i].From.UTC(), got[i].To.UTC()
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s:\n got %+v\nwant %+v", test.name, got, test.want)
		}
	}
}

// TestRunsAreBounded: a broker that is killed repeatedly takes only bounded memory of a reader.
func TestRunsAreBounded(t *testing.T) {
	r, holes := newRuns(), 0
	began := time.Now()
	for n := range 3 * maxRuns {
		r.next(head{Instance: "a", Start: fmt.Sprint(n), Number: 1}, began.Add(time.Duration(n)*time.Second),
			func(Hole) { holes++ })
	}
	if len(r.all) != maxRuns || holes != 2*maxRuns {
		t.Errorf("the report keeps %d starts and has %d holes, want %d and %d", len(r.all), holes, maxRuns, 2*maxRuns)
	}
}
