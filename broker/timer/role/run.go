package role

import (
	"context"
	"time"

	"delaybroker/broker/leader"
	"delaybroker/broker/timer/entry"
)

// run is what is known of the run of debounced sets that a set belongs to: see package timer.
type run struct {
	most    time.Duration // Delay-Max-Wait; zero for a set that is not debounced
	due     time.Time     // by its own Delay-For
	from    uint64        // the generation of the first set; zero where it is not known
	at      time.Time     // when that was stored
	certain bool          // the leader has said so, since the set is the last entry
}

// Debounced reports whether the set belongs to a run.
func (a *Alarm) Debounced() bool { return a.run.most > 0 }

// Last reports whether nothing was read behind a pending set.
func (a *Alarm) Last() bool { return a.Stage == Pending && !a.Superseded }

// succeedsRun takes from its own entry what it says of a run. The run may have left entries before it.
func (a *Alarm) succeedsRun(e entry.Entry) {
	if a.run.most, a.run.due = e.MaxWait, e.Due; e.Debounced() {
		a.cleared = e.First
	}
}

// Follow notes the set that was read right before one that was just read; nil if that is not in memory. It returns when
// the timer is due, as far as that is known: a debounced set whose run is not known is due at once, and then RunOf is
// asked.
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

// RunRead notes with which set the run has begun, and when, and returns when the timer is due.
func (a *Alarm) RunRead(from uint64, at time.Time) (due time.Time) {
	a.run.from, a.run.at, a.run.certain = from, at, true
	return a.run.ends()
}

// ends is when a set is due that no other one follows.
func (r run) ends() time.Time {
	if last := r.at.Add(r.most); last.Before(r.due) {
		return last
	}
	return r.due
}

// bounded reports whether a timer would fire before its own Delay-For ends, and the leader has not said yet when its run
// has begun.
func (a *Alarm) bounded(when leader.Time) bool {
	return a.Debounced() && !a.run.certain && when.Before(leader.At(a.run.due))
}

// mayBegin reports whether a set may be the first of its run.
func (a *Alarm) mayBegin() bool {
	return a.Debounced() && (a.run.from == 0 || a.run.from == a.Generation)
}

// keepsFrom is the entry before which nothing is needed any more once the timer's marker is stored: the set, or the
// first of its run; zero where that is not known.
func (a *Alarm) keepsFrom() uint64 {
	if a.Debounced() {
		return a.run.from
	}
	return a.Generation
}

// RunOf reads with which set the run of a debounced one has begun, and when that was stored.
//
// An entry that ends a run is removed only after all entries before it. So as long as the first set is there, whatever
// has ended its run is there, too; and that it is still there is asked last.
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
