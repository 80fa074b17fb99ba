package journal

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// input is the head of a batch, and the time from began until the batch was stored.
type input struct {
	after time.Duration
	head
}

var began = time.Unix(0, 1795222624918700000).UTC()

func after(d time.Duration) time.Time { return began.Add(d) }

// beat returns the head of an instance's batch with the number n, without records.
func beat(d time.Duration, instance string, n uint64) input {
	return input{d, head{Instance: instance, Start: "1", Number: n, Previous: n - 1}}
}

// end returns the head with the mark of the last batch.
func end(w input) input {
	w.End = true
	return w
}

// lossReport returns the head of a batch that reports dropped records.
func lossReport() input {
	w := beat(time.Minute, "a", 3)
	w.Previous, w.Lost = 1, &span{7, after(time.Second).UnixNano(), after(2 * time.Second).UnixNano()}
	return w
}

// secondStart returns the head of the first batch of another start.
func secondStart() input {
	w := beat(time.Minute, "a", 1)
	w.Start = "2"
	return w
}

const (
	killed  = "the last records of the instance may be missing: it was killed or lost its connection"
	silent  = "the instance does not answer, and its last records may be missing: it was killed or lost its connection"
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
	batches []input
	now     time.Duration
	want    []Hole
	copies  int
}{
	{"an instance that continues to write", []input{beat(0, "a", 1), beat(time.Minute, "a", 2)}, 2 * time.Minute, nil, 0},
	{"the first batches are removed", []input{beat(0, "a", 17)}, time.Minute, nil, 0},
	{"an instance that has stopped", []input{beat(0, "a", 1), end(beat(time.Minute, "a", 2)), beat(time.Minute, "b", 1),
		beat(2*time.Minute, "b", 2), beat(3*time.Minute, "b", 3), beat(4*time.Minute, "b", 4)}, 5 * time.Minute, nil, 0},
	{"killed", []input{beat(0, "a", 1), beat(0, "b", 1), beat(time.Minute, "b", 2), beat(2*time.Minute, "b", 3),
		beat(3*time.Minute, "b", 4)}, 3 * time.Minute,
		[]Hole{{Instance: "a", From: after(-MaxStoreDelay), To: after(time.Minute + flushInterval), Reason: killed}}, 0},
	{"perhaps killed", []input{beat(0, "a", 1), beat(0, "b", 1), beat(time.Minute, "b", 2), beat(2*time.Minute, "b", 3)},
		deadAfter, []Hole{{Instance: "a", From: after(-MaxStoreDelay), To: after(deadAfter), Reason: unknown}}, 0},
	{"silent for a minute", []input{beat(0, "a", 1)}, DoubtAfter, nil, 0},
	{"no instance wrote for a while", []input{end(beat(0, "a", 1)), beat(deadAfter+1, "b", 1)}, deadAfter + 1,
		[]Hole{{From: began, To: after(deadAfter + 1), Reason: nobody}}, 0},
	{"no instance could write for a while", []input{beat(0, "a", 1), beat(time.Hour, "a", 2)}, time.Hour, nil, 0},
	{"a search begins while no instance can write", []input{end(beat(0, "a", 1)), beat(time.Hour, "b", 9)}, time.Hour, nil,
		0},
	{"killed while no instance could write", []input{beat(0, "a", 1), beat(0, "b", 1), beat(time.Hour, "b", 2),
		beat(61*time.Minute, "b", 3), beat(62*time.Minute, "b", 4)}, 62 * time.Minute,
		[]Hole{{Instance: "a", From: after(-MaxStoreDelay), To: after(time.Hour), Reason: killed}}, 0},
	{"killed long before no instance could write", []input{beat(0, "a", 1), beat(0, "b", 1), beat(time.Minute, "b", 2),
		beat(2*time.Minute, "b", 3), beat(3*time.Minute, "b", 4), beat(time.Hour, "b", 5)}, time.Hour,
		[]Hole{{Instance: "a", From: after(-MaxStoreDelay), To: after(time.Minute + flushInterval), Reason: killed}}, 0},
	{"killed while no instance could write twice", []input{beat(0, "a", 1), beat(0, "b", 1), beat(time.Hour, "b", 2),
		beat(2*time.Hour, "b", 3)}, 2 * time.Hour,
		[]Hole{{Instance: "a", From: after(-MaxStoreDelay), To: after(2 * time.Hour), Reason: killed}}, 0},
	{"no instance writes", []input{end(beat(0, "a", 1))}, time.Hour,
		[]Hole{{From: began, To: after(time.Hour), Reason: since}}, 0},
	{"a batch is removed", []input{beat(0, "a", 1), beat(time.Minute, "a", 3)}, time.Minute,
		[]Hole{{Instance: "a", From: after(-MaxStoreDelay), To: after(time.Minute), Reason: removed}}, 0},
	{"records were dropped, with a batch that was given up", []input{beat(0, "a", 1), lossReport()}, time.Minute,
		[]Hole{{Instance: "a", From: after(time.Second), To: after(2 * time.Second), Records: 7, Reason: dropped}}, 0},
	{"a batch was given up, and stored nevertheless",
		[]input{beat(0, "a", 1), beat(30*time.Second, "a", 2), lossReport()}, time.Minute,
		[]Hole{{Instance: "a", From: after(time.Second), To: after(2 * time.Second), Records: 7, Reason: dropped}}, 0},
	{"stored twice", []input{beat(0, "a", 1), beat(1, "a", 2), beat(2, "a", 2), beat(3, "a", 1), end(beat(4, "a", 3)),
		beat(5, "a", 2)}, time.Minute, nil, 3},
	{"another start of an instance", []input{beat(0, "a", 1), end(beat(1, "a", 2)), secondStart()}, time.Minute, nil, 0},
}

// TestHoles: without the states of the writers, a search finds holes by the batches.
func TestHoles(t *testing.T) {
	for _, test := range holes {
		r, copies := newSummaries(), 0
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
// batch, with a record that is a tenth of a second older than the batch.
func TestHolesByStates(t *testing.T) {
	last := after(-100 * time.Millisecond)
	gone := func(to time.Duration) []Hole {
		return []Hole{{Instance: "a", From: last.Add(-MaxStoreDelay), To: after(to), Reason: silent}}
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
		{"a has just written", []State{}, MaxStoreDelay, nil},
		{"no instance runs", []State{}, MaxStoreDelay + 1, gone(MaxStoreDelay + 1)},
		{"only b runs", []State{state("b", "1")}, 10 * time.Second, gone(10 * time.Second)},
		{"a was started again", []State{state("a", "2")}, 10 * time.Second, gone(10 * time.Second)},
		{"a was started again two minutes ago", []State{state("a", "2")}, 2 * time.Minute, gone(time.Minute + flushInterval)},
		{"a runs", []State{state("b", "1"), state("a", "1")}, 10 * time.Second, nil},
		{"a runs an older version", []State{state("a", "")}, 10 * time.Second, nil},
		{"records have waited for a second", []State{stuckSince(state("a", "1"), 9*time.Second)}, 10 * time.Second, nil},
		{"records have waited for longer", []State{stuckSince(state("a", "1"), 9*time.Second-1)}, 10 * time.Second,
			waiting(9*time.Second-1, 10*time.Second)},
		{"the second start of a never wrote", []State{state("a", "1"), stuckSince(state("a", "2"), 0)}, 10 * time.Second,
			waiting(0, 10*time.Second)},
	} {
		r := newSummaries()
		var got []Hole
		hole := func(h Hole) { got = append(got, h) }
		r.addBatch(head{Instance: "a", Start: "1", Number: 1, Records: 1, Last: last.UnixNano()}, began, hole)
		r.reportSilent(after(test.now), test.states, hole)
		if !slices.Equal(got, test.want) {
			t.Errorf("%s:\n got %+v\nwant %+v", test.name, got, test.want)
		}
	}
}

// TestSummariesAreBounded: a search keeps at most maxSummaries summaries of a broker that is killed repeatedly.
func TestSummariesAreBounded(t *testing.T) {
	r, holes := newSummaries(), 0
	began := time.Now()
	for n := range 3 * maxSummaries {
		r.addBatch(head{Instance: "a", Start: fmt.Sprint(n), Number: 1}, began.Add(time.Duration(n)*time.Second),
			func(Hole) { holes++ })
	}
	if len(r.byStart) != maxSummaries || holes != 2*maxSummaries {
		t.Errorf("%d summaries and %d holes, want %d and %d", len(r.byStart), holes, maxSummaries, 2*maxSummaries)
	}
}
