package journal

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// stored is the head of a batch that was stored some time after began.
type stored struct {
	after time.Duration
	head
}

var began = time.Unix(0, 1795222624918700000).UTC()

func after(d time.Duration) time.Time { return began.Add(d) }

// mark returns a batch without records of an instance.
func mark(d time.Duration, instance string, n uint64) stored {
	return stored{d, head{Instance: instance, Start: "1", Number: n, Previous: n - 1}}
}

// ends returns the last batch of an instance.
func ends(w stored) stored {
	w.End = true
	return w
}

// lossy returns a batch that reports dropped records before it.
func lossy() stored {
	w := mark(time.Minute, "a", 3)
	w.Previous, w.Lost = 1, &span{7, after(time.Second).UnixNano(), after(2 * time.Second).UnixNano()}
	return w
}

// restarted returns the first batch of another start of an instance.
func restarted() stored {
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

// holes are lists of batches, with the holes that they show.
var holes = []struct {
	name    string
	batches []stored
	now     time.Duration
	want    []Hole
	copies  int
}{
	{"an instance that continues to write", []stored{mark(0, "a", 1), mark(time.Minute, "a", 2)}, 2 * time.Minute, nil, 0},
	{"the first batches are removed", []stored{mark(0, "a", 17)}, time.Minute, nil, 0},
	{"an instance that has stopped", []stored{mark(0, "a", 1), ends(mark(time.Minute, "a", 2)), mark(time.Minute, "b", 1),
		mark(2*time.Minute, "b", 2), mark(3*time.Minute, "b", 3), mark(4*time.Minute, "b", 4)}, 5 * time.Minute, nil, 0},
	{"killed", []stored{mark(0, "a", 1), mark(0, "b", 1), mark(time.Minute, "b", 2), mark(2*time.Minute, "b", 3),
		mark(3*time.Minute, "b", 4)}, 3 * time.Minute,
		[]Hole{{Instance: "a", From: after(-maxStoreDelay), To: after(time.Minute + flushInterval), Reason: killed}}, 0},
	{"perhaps killed", []stored{mark(0, "a", 1), mark(0, "b", 1), mark(time.Minute, "b", 2), mark(2*time.Minute, "b", 3)},
		deadAfter, []Hole{{Instance: "a", From: after(-maxStoreDelay), To: after(deadAfter), Reason: unknown}}, 0},
	{"silent for a minute", []stored{mark(0, "a", 1)}, DoubtAfter, nil, 0},
	{"no instance wrote for a while", []stored{ends(mark(0, "a", 1)), mark(deadAfter+1, "b", 1)}, deadAfter + 1,
		[]Hole{{From: began, To: after(deadAfter + 1), Reason: nobody}}, 0},
	{"no instance could write for a while", []stored{mark(0, "a", 1), mark(time.Hour, "a", 2)}, time.Hour, nil, 0},
	{"killed while no instance could write", []stored{mark(0, "a", 1), mark(0, "b", 1), mark(time.Hour, "b", 2),
		mark(61*time.Minute, "b", 3), mark(62*time.Minute, "b", 4)}, 62 * time.Minute,
		[]Hole{{Instance: "a", From: after(-maxStoreDelay), To: after(time.Hour), Reason: killed}}, 0},
	{"no instance writes", []stored{ends(mark(0, "a", 1))}, time.Hour,
		[]Hole{{From: began, To: after(time.Hour), Reason: since}}, 0},
	{"a batch is removed", []stored{mark(0, "a", 1), mark(time.Minute, "a", 3)}, time.Minute,
		[]Hole{{Instance: "a", From: after(-maxStoreDelay), To: after(time.Minute), Reason: removed}}, 0},
	{"records were dropped, with a batch that was given up", []stored{mark(0, "a", 1), lossy()}, time.Minute,
		[]Hole{{Instance: "a", From: after(time.Second), To: after(2 * time.Second), Records: 7, Reason: dropped}}, 0},
	{"a batch was given up, and stored nevertheless",
		[]stored{mark(0, "a", 1), mark(30*time.Second, "a", 2), lossy()}, time.Minute,
		[]Hole{{Instance: "a", From: after(time.Second), To: after(2 * time.Second), Records: 7, Reason: dropped}}, 0},
	{"stored twice", []stored{mark(0, "a", 1), mark(1, "a", 2), mark(2, "a", 2), mark(3, "a", 1), ends(mark(4, "a", 3)),
		mark(5, "a", 2)}, time.Minute, nil, 3},
	{"another start of an instance", []stored{mark(0, "a", 1), ends(mark(1, "a", 2)), restarted()}, time.Minute, nil, 0},
}

// TestHoles: a search finds these holes in these batches, without the states of the writers.
func TestHoles(t *testing.T) {
	for _, test := range holes {
		r, copies := newRuns(), 0
		var got []Hole
		hole := func(h Hole) { got = append(got, h) }
		for _, w := range test.batches {
			if !r.addBatch(w.head, after(w.after), hole) {
				copies++
			}
		}
		r.reportSilent(after(test.now), nil, hole)
		if !slices.Equal(got, test.want) || copies != test.copies {
			t.Errorf("%s: got %+v and %d copies, want %+v and %d", test.name, got, copies, test.want, test.copies)
		}
	}
}

// state returns the state of an instance's writer.
func state(instance, start string) State { return State{Instance: instance, Start: start} }

// stuckSince returns the state of a writer that cannot store its records.
func stuckSince(s State, d time.Duration) State {
	s.UnstoredRecords, s.Since = 5, after(d)
	return s
}

// TestHolesByStates: a search also finds holes by the states of the running writers. The instance a has stored one
// batch, with a record from a tenth of a second before.
func TestHolesByStates(t *testing.T) {
	last := after(-100 * time.Millisecond)
	gone := func(to time.Duration) []Hole {
		return []Hole{{Instance: "a", From: last.Add(-maxStoreDelay), To: after(to), Reason: silent}}
	}
	waiting := func(from, to time.Duration) []Hole {
		return []Hole{{Instance: "a", From: after(from), To: after(to), Records: 5, Reason: stuck}}
	}
	for _, test := range []struct {
		name   string
		states []State
		now    time.Duration
		want   []Hole
	}{
		{"a has just written", []State{}, maxStoreDelay, nil},
		{"no instance runs", []State{}, maxStoreDelay + 1, gone(maxStoreDelay + 1)},
		{"only b runs", []State{state("b", "1")}, 10 * time.Second, gone(10 * time.Second)},
		{"a was started again", []State{state("a", "2")}, 10 * time.Second, gone(10 * time.Second)},
		{"a was started again two minutes ago", []State{state("a", "2")}, 2 * time.Minute, gone(time.Minute + flushInterval)},
		{"a runs", []State{state("b", "1"), state("a", "1")}, 10 * time.Second, nil},
		{"a runs an older version", []State{state("a", "")}, 10 * time.Second, nil},
		{"records of a wait for a second", []State{stuckSince(state("a", "1"), 9*time.Second)}, 10 * time.Second, nil},
		{"records of a wait for longer", []State{stuckSince(state("a", "1"), 9*time.Second-1)}, 10 * time.Second,
			waiting(9*time.Second-1, 10*time.Second)},
		{"the second start of a never wrote", []State{state("a", "1"), stuckSince(state("a", "2"), 0)}, 10 * time.Second,
			waiting(0, 10*time.Second)},
	} {
		r := newRuns()
		var got []Hole
		hole := func(h Hole) { got = append(got, h) }
		r.addBatch(head{Instance: "a", Start: "1", Number: 1, Records: 1, Last: last.UnixNano()}, began, hole)
		r.reportSilent(after(test.now), test.states, hole)
		if !slices.Equal(got, test.want) {
			t.Errorf("%s:\n got %+v\nwant %+v", test.name, got, test.want)
		}
	}
}

// TestRunsAreBounded: a search keeps at most maxRuns runs of a broker that is killed repeatedly.
func TestRunsAreBounded(t *testing.T) {
	r, holes := newRuns(), 0
	began := time.Now()
	for n := range 3 * maxRuns {
		r.addBatch(head{Instance: "a", Start: fmt.Sprint(n), Number: 1}, began.Add(time.Duration(n)*time.Second),
			func(Hole) { holes++ })
	}
	if len(r.byStart) != maxRuns || holes != 2*maxRuns {
		t.Errorf("%d runs and %d holes, want %d and %d", len(r.byStart), holes, maxRuns, 2*maxRuns)
	}
}
