package role

import (
	"context"
	"time"

	"delaybroker/broker/leader"
	"delaybroker/broker/timer/entry"
)

// run describes the run of a debounced set, as far as the worker knows it. A run is the consecutive debounced sets of
// one timer; only the last one fires: see package timer.
type run struct {
	maxWait time.Duration // Delay-Max-Wait of the set; zero if the set is not debounced
	due     time.Time     // the due time of the set by its own Delay-For
	first   uint64        // the generation of the run's first set; zero if unknown
	firstAt time.Time     // when that set was stored
	certain bool          // first and firstAt were read from the leader (ReadRun)
}

// Debounced reports whether the set belongs to a run.
func (a *Alarm) Debounced() bool { return a.run.maxWait > 0 }

// IsPending reports whether the timer is pending, and the worker has read no later entry of its subject.
func (a *Alarm) IsPending() bool { return a.Stage == Pending && !a.Superseded }

// takeRun takes the facts about the run from the alarm's own entry.
func (a *Alarm) takeRun(e entry.Entry) {
	if a.run.maxWait, a.run.due = e.MaxWait, e.Due; e.Debounced() {
		a.cleared = e.First // before a later set, the first set stays until the run has ended
	}
}

// JoinRun records the start of the set's run, if it is known, and returns the due time. Predecessor is the alarm of the
// directly preceding set; nil if that set is not in memory. A debounced set whose run has an unknown start is due
// immediately: then the worker calls ReadRun.
func (a *Alarm) JoinRun(predecessor *Alarm, e entry.Entry) (due time.Time) {
	switch {
	case !e.Debounced():
		a.endsRun = !e.First && (predecessor == nil || predecessor.Debounced())
		return e.Due
	case e.First, predecessor != nil && !predecessor.Debounced():
		a.run.first, a.run.firstAt = a.Generation, a.At
	case predecessor != nil && predecessor.run.first != 0:
		a.run.first, a.run.firstAt = predecessor.run.first, predecessor.run.firstAt
	default:
		return a.At
	}
	return a.run.firesAt()
}

// RunRead records the first set of the run, and the time at which it was stored. It returns the due time of the timer.
func (a *Alarm) RunRead(first uint64, at time.Time) (due time.Time) {
	a.run.first, a.run.firstAt, a.run.certain = first, at, true
	return a.run.firesAt()
}

// firesAt returns the time at which the set fires, unless a later set replaces it.
func (r run) firesAt() time.Time {
	if latest := r.firstAt.Add(r.maxWait); latest.Before(r.due) {
		return latest
	}
	return r.due
}

// needsRun reports whether the worker must call ReadRun: the given due time is before the end of the set's own
// Delay-For, and the start of the run is not certain.
func (a *Alarm) needsRun(due leader.Time) bool {
	return a.Debounced() && !a.run.certain && due.Before(leader.At(a.run.due))
}

// mayStartRun reports whether a set may be the first of its run.
func (a *Alarm) mayStartRun() bool {
	return a.Debounced() && (a.run.first == 0 || a.run.first == a.Generation)
}

// oldestKept returns the sequence of the oldest entry to keep when the timer's marker is stored: the set or, for a
// debounced set, the first set of its run. It returns zero if the first set is unknown.
func (a *Alarm) oldestKept() uint64 {
	if a.Debounced() {
		return a.run.first
	}
	return a.Generation
}

// ReadRun finds the run of the given debounced set, and returns the run's first set with the time of its storage.
//
// The worker may remove entries while ReadRun reads them. It removes an entry that ended a run only after all entries
// before that entry. So if the first set is still stored after the reads, ReadRun has missed no such entry. If the
// first set or the given set is gone, ReadRun returns an error.
func (s *Stream) ReadRun(
	ctx context.Context, subject string, generation uint64,
) (first uint64, at time.Time, err error) {
	for next := uint64(1); next <= generation; {
		m, err := s.nextEntry(ctx, subject, next)
		if err != nil {
			return 0, at, err
		}
		switch e := entry.Parse(s.Policy, m.Incoming(s.Name())); {
		case m.Sequence > generation:
			return 0, at, errReplaced
		case !e.Debounced():
			first = 0
		case first == 0:
			first, at = m.Sequence, m.Time
		}
		next = m.Sequence + 1
	}
	if first == generation {
		return first, at, nil
	}
	m, err := s.nextEntry(ctx, subject, first)
	if err == nil && m.Sequence != first {
		err = errReplaced
	}
	return first, at, err
}
