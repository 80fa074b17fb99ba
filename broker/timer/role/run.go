package role

import (
	"context"
	"errors"
	"time"

	"delaybroker/broker/leader"
	"delaybroker/broker/timer/entry"
)

// A run is the consecutive debounced sets of one timer. Only the last one fires: see package timer. The work for a run
// does not depend on its length: the timers' lane reads the sets in order, so only the first of them that it reads asks
// for the start of the run.

// run describes a run that the timers' lane has read. The alarms of its sets share it. Only the loop of that lane uses
// it, except for the run of a marker, which one alarm has for itself.
type run struct {
	start runStart
	// certain means that the lane has read each entry that could have ended the run. The start was stored, or read, after
	// a set that was stored while this instance was active: no earlier one removes later entries.
	certain bool
	reader  *Alarm // the alarm that must read the start of the run; nil if the start is known, or cannot be read
	last    *Alarm // the alarm of the latest set that the lane has read; nil if it has left memory
	latest  uint64 // the generation of that set
	ended   bool   // the lane has read an entry that ended the run
	alarms  int    // the number of the run's alarms in memory
}

// runStart is the first set of a run, as far as it is known.
type runStart struct {
	set    uint64    // its generation; zero if it is unknown
	at     time.Time // when it was stored; zero if it is unknown
	readTo uint64    // readRun has read the entries up to this sequence; zero if it has read none
}

// runs has the runs of a lane, by subject. A run stays while the lane has an alarm of its sets in memory: until then,
// entries may remain whose removal is queued.
type runs map[string]*run

// debounce is the part of an alarm for debounced sets.
type debounce struct {
	maxWait time.Duration // Delay-Max-Wait of the set; zero if the set is not debounced
	ownDue  time.Time     // the due time of the set by its own Delay-For
	run     *run          // nil if the set is not debounced, or nothing is known about its run
	certain bool          // no entry has ended the run since its start, according to the leader
	owned   bool          // the set was stored while this instance was active
	endsRun bool          // the set may have ended a run; the run's entries must be removed before the set's own
}

// Debounced reports whether the set belongs to a run.
func (a *Alarm) Debounced() bool { return a.maxWait > 0 }

// end records that the timers' lane has read an entry that ends the run of its subject: any entry but a debounced set.
func (r runs) end(subject string, sequence uint64) {
	if run := r[subject]; run != nil && sequence > run.latest { // not if the lane parses the entry a second time
		run.ended = true
	}
}

// join records that the timers' lane has read a set. It returns the due time, as far as the start of the set's run is
// known. Previous is the alarm of the latest set before this one; nil if that set is not in memory. If it is still
// pending, no entry lies between the two sets. Owned reports whether this instance was active when the set was
// stored.
func (r runs) join(a, previous *Alarm, e entry.Entry, owned bool) (due time.Time) {
	if previous != nil && !previous.isPending() {
		previous = nil
	}
	if !e.Debounced() {
		a.endsRun = !e.First && (previous == nil || previous.Debounced())
		return e.Due
	}
	of := r[a.Subject]
	switch {
	case e.First, previous != nil && !previous.Debounced(), of != nil && of.ended:
		of = &run{start: runStart{set: a.Generation, at: a.At}, certain: owned}
	case of == nil, of.latest >= a.Generation: // the latter: the set is of a new history of the stream
		of = &run{reader: a}
	case of.reader == nil && of.start.set == 0: // the alarm that should have read the start has left memory
		of.reader = a
	}
	of.last, of.latest, of.alarms = a, a.Generation, of.alarms+1
	r[a.Subject], a.run, a.owned = of, of, owned
	return a.FiresAt()
}

// leave records that an alarm has left memory.
func (r runs) leave(a *Alarm) {
	run := a.run
	if run == nil {
		return
	}
	if run.reader == a {
		run.reader, run.start = nil, runStart{}
	}
	if run.last == a {
		run.last = nil
	}
	if run.alarms--; run.alarms == 0 && r[a.Subject] == run {
		delete(r, a.Subject)
	}
}

// runStart returns what is known about the start of the set's run.
func (a *Alarm) runStart() runStart {
	if a.run == nil {
		return runStart{}
	}
	return a.run.start
}

// runWasRead records the start of the run, for all its sets.
func (a *Alarm) runWasRead(start runStart) {
	if a.run == nil {
		a.run = new(run)
	}
	a.run.start, a.run.reader, a.run.certain = start, nil, a.owned
	a.certain = true
}

// runNotRead records that readRun has failed, and how far it has come. It returns the next step. If the alarm's own
// entry is gone, and a later set has replaced it, the latest set reads the start of the run.
func (a *Alarm) runNotRead(progress runStart, err error) Step {
	reads, gone := a.readsRun(), errors.Is(err, errReplaced)
	switch {
	case reads && gone && a.state == replaced:
		a.settle(settled)
		a.run.start, a.run.reader = runStart{}, nil
		if last := a.run.last; last != nil && last.isPending() {
			a.run.reader = last
		}
		return Step{Kind: Drop}
	case reads && !gone:
		a.run.start = progress
	default:
		a.state = doubt // its own entry may have been removed
	}
	return Step{Kind: Repeat, Err: err}
}

// readsRun reports whether the alarm must read the start of its run, even if a later set has replaced its own set.
func (a *Alarm) readsRun() bool { return a.HasBody() && a.run != nil && a.run.reader == a }

// knowsStart reports whether the start of the set's run is known.
func (a *Alarm) knowsStart() bool { return a.run != nil && a.run.reader == nil && a.run.start.set != 0 }

// FiresAt returns the time at which the set fires, unless a later set replaces it. If the start of the run is unknown,
// this is the end of the set's own Delay-For.
func (a *Alarm) FiresAt() time.Time {
	if a.knowsStart() && !a.run.start.at.IsZero() {
		if latest := a.run.start.at.Add(a.maxWait); latest.Before(a.ownDue) {
			return latest
		}
	}
	return a.ownDue
}

// awaitsRun reports whether the set waits in memory because another alarm reads the start of its run.
func (a *Alarm) awaitsRun() bool { return a.run != nil && a.run.reader != nil && a.run.reader != a }

// needsRun reports whether the worker must call readRun: the given due time is before the end of the set's own
// Delay-For, and the start of the run is not certain.
func (a *Alarm) needsRun(due leader.Time) bool {
	return a.Debounced() && !a.certain && !(a.run != nil && a.run.certain) && due.Before(leader.At(a.ownDue))
}

// mayStartRun reports whether a set may be the first of its run.
func (a *Alarm) mayStartRun() bool {
	return a.Debounced() && (a.run == nil || a.run.reader == a || a.run.start.set == a.Generation)
}

// oldestKept returns the sequence of the oldest entry to keep when the timer's marker is stored: the set or, for a
// debounced set, the first set of its run. It returns zero if the first set is unknown.
func (a *Alarm) oldestKept() uint64 {
	switch {
	case !a.Debounced():
		return a.Generation
	case a.knowsStart():
		return a.run.start.set
	}
	return 0
}

// readRun finds the run of the given debounced set, and returns the run's first set. Known is what is known about the
// first set. If known has a first set, one read shows whether that set is still stored. If it is, the worker has missed
// no entry that ended the run: such an entry is removed only after all entries before it.
//
// Otherwise, readRun reads the entries of the subject in order, up to the given set. These are few: the worker has
// handled the earlier entries, and has removed those that need not stay. After an error, readRun also returns its
// progress. A later call with this progress continues.
//
// The worker may remove entries while readRun reads them. So readRun finally reads the first set again. If that set is
// gone, readRun returns errRunEnded, and no progress. If the given set is gone, it returns errReplaced.
func (s *Stream) readRun(ctx context.Context, subject string, generation uint64, known runStart) (runStart, error) {
	if known.set != 0 && known.readTo == 0 {
		m, err := s.nextEntry(ctx, subject, known.set)
		if err != nil {
			return known, err
		}
		if m.Sequence == known.set && (known.at.IsZero() || m.At.Equal(known.at)) {
			known.at = m.At
			return known, nil
		}
		known = runStart{}
	}
	for known.readTo < generation {
		m, err := s.nextEntry(ctx, subject, known.readTo+1)
		if err != nil {
			return known, err
		}
		switch e := entry.Parse(s.Policy, m); {
		case m.Sequence > generation:
			return runStart{}, errReplaced
		case !e.Debounced():
			known.set = 0
		case known.set == 0:
			known.set, known.at = m.Sequence, m.At
		}
		known.readTo = m.Sequence
	}
	start := runStart{set: known.set, at: known.at}
	if start.set == generation {
		return start, nil
	}
	m, err := s.nextEntry(ctx, subject, start.set)
	switch {
	case err != nil:
		return known, err
	case m.Sequence != start.set:
		return runStart{}, errRunEnded
	}
	return start, nil
}
