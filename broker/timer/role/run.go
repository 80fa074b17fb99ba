package role

import (
	"context"
	"time"

	"delaybroker/broker/leader"
	"delaybroker/broker/timer/entry"
)

// run is the worker's knowledge of the run of a debounced set. A run is a sequence of sets of one timer, of which only
// the last one fires: see package timer.
type run struct {
	maxWait time.Duration // Delay-Max-Wait of the set; zero if it is not debounced
	due     time.Time     // the due time of the set by its own Delay-For
	from    uint64        // the generation of the first set; zero if unknown
	at      time.Time     // when the first set was stored
	certain bool          // from and at were read from the leader (RunOf)
}

// Debounced reports whether the set belongs to a run.
func (a *Alarm) Debounced() bool { return a.run.maxWait > 0 }

// StillPending reports whether the timer is pending and no later entry of its subject was read.
func (a *Alarm) StillPending() bool { return a.Stage == Pending && !a.Superseded }

// takeRun records the facts about the run in the alarm's own entry.
func (a *Alarm) takeRun(e entry.Entry) {
	if a.run.maxWait, a.run.due = e.MaxWait, e.Due; e.Debounced() {
		a.cleared = e.First // before a later set, sets of the run may still be stored
	}
}

// Follow takes the start of the run from before, the alarm of the directly preceding set. Before is nil if that set is
// not in memory. Follow returns the due time. A debounced set whose run is unknown is due immediately: then the worker
// calls RunOf.
func (a *Alarm) Follow(before *Alarm, e entry.Entry) (due time.Time) {
	switch {
	case !e.Debounced():
		a.closes = !e.First && (before == nil || before.Debounced())
		return e.Due
	case e.First, before != nil && !before.Debounced():
		a.run.from, a.run.at = a.Generation, a.At
	case before != nil && before.run.from != 0:
		a.run.from, a.run.at = before.run.from, before.run.at
	default:
		return a.At
	}
	return a.run.ends()
}

// RunRead records the first set of the run, and the time at which it was stored. It returns the due time of the timer.
func (a *Alarm) RunRead(from uint64, at time.Time) (due time.Time) {
	a.run.from, a.run.at, a.run.certain = from, at, true
	return a.run.ends()
}

// ends returns the due time of the set if no other set replaces it.
func (r run) ends() time.Time {
	if last := r.at.Add(r.maxWait); last.Before(r.due) {
		return last
	}
	return r.due
}

// bounded reports whether the worker must call RunOf: the timer is due before its own Delay-For has passed, and the
// start of its run is not certain.
func (a *Alarm) bounded(when leader.Time) bool {
	return a.Debounced() && !a.run.certain && when.Before(leader.At(a.run.due))
}

// mayStartRun reports whether a set may be the first of its run.
func (a *Alarm) mayStartRun() bool {
	return a.Debounced() && (a.run.from == 0 || a.run.from == a.Generation)
}

// keepsFrom returns the sequence of the oldest entry to keep once the timer's marker is stored: that of the set, or of
// the first set of its run. It returns zero if the first set is unknown.
func (a *Alarm) keepsFrom() uint64 {
	if a.Debounced() {
		return a.run.from
	}
	return a.Generation
}

// RunOf reads the first set of the run of a debounced set, and the time at which the first set was stored.
//
// The worker may remove entries while RunOf reads them. It removes an entry that ended a run after all entries before
// it. So if the first set is still stored after the reads, RunOf has missed no such entry. The last request checks
// this.
func (s *Stream) RunOf(
	ctx context.Context, subject string, generation uint64,
) (from uint64, at time.Time, err error) {
	for next := uint64(1); next <= generation; {
		m, err := s.known(ctx, subject, next)
		if err != nil {
			return 0, at, err
		}
		switch e := entry.Parse(s.Policy, m.Incoming(s.Name())); {
		case m.Sequence > generation:
			return 0, at, errReplaced
		case !e.Debounced():
			from = 0
		case from == 0:
			from, at = m.Sequence, m.Time
		}
		next = m.Sequence + 1
	}
	if from == generation {
		return from, at, nil
	}
	m, err := s.known(ctx, subject, from)
	if err == nil && m.Sequence != from {
		err = errReplaced
	}
	return from, at, err
}
