package timetable

import (
	"encoding/binary"
	"hash/fnv"
	"time"
)

const (
	// maxLate is the maximum lateness of a round that is not missed. After a crash, another instance takes over in less
	// time.
	maxLate = time.Minute
	// catchUpInterval is the minimum time between two overdue rounds of one series that fire.
	catchUpInterval = 100 * time.Millisecond
	// maxCounted is the maximum number of missed occurrences that one decision counts: for a cron table, each costs a
	// search.
	maxCounted = 100
)

// Series identifies a series of rounds. A client's set of the timer begins a new series.
type Series struct {
	ID    uint64    // unique among all series
	First time.Time // for an Every table: its planned times are First plus multiples of the interval
}

// Round is a round of a series.
type Round struct {
	Number  int       // counts the rounds that fire, from 1
	Planned time.Time // a time of the table, or the requested time of the first round
	Due     time.Time // Planned plus jitter, or the time to which a client has moved the round; zero while paused
}

// Decision is the decision about a due round.
type Decision struct {
	Fire    bool      // the round fires; if false, the round was missed, and Next replaces it
	Next    Round     // zero if the series has ended
	Wait    time.Time // the earliest time at which an overdue Next may fire; zero if Next is not overdue
	Skipped int       // number of missed occurrences that do not fire, at most maxCounted
}

// Round returns the round with the given number and planned time. Its jitter is the same on every instance. The round
// is due before the next planned time, even if a clock change has shortened the time between the two.
func (t Table) Round(s Series, number int, planned time.Time) Round {
	r := Round{Number: number, Planned: planned, Due: planned}
	if limit := t.Jitter; limit > 0 {
		if t.spec != nil {
			if next := t.spec.nextTime(planned); !next.IsZero() {
				limit = min(limit, next.Sub(planned))
			}
		}
		h := fnv.New64a()
		_ = binary.Write(h, binary.BigEndian, [2]uint64{s.ID, uint64(number)})
		jitter := time.Duration(h.Sum64() % uint64(limit))
		r.Due = planned.Add(jitter.Truncate(time.Millisecond))
	}
	return r
}

// Decide decides about a due round. The previous round must have left the lane of the timers. The round is missed if
// the next round is due, too, or if the round is more than maxLate late.
func (t Table) Decide(s Series, r Round, now time.Time) Decision {
	from := r.Planned
	if moved := !r.Due.Equal(t.Round(s, r.Number, r.Planned).Due); moved && r.Due.After(from) {
		from = r.Due // a client has moved the round: planned times that it has passed have no round
	}
	next, more := t.Next(s.First, from)
	missed := more && !now.Before(t.Round(s, r.Number+1, next).Due) || now.Sub(r.Due) > maxLate
	d := Decision{Fire: !missed || t.Missed != Skip}
	number := r.Number
	if d.Fire {
		number++
	} else {
		d.Skipped++
	}
	if t.Rounds > 0 && number > t.Rounds {
		return d
	}
	if missed && t.Missed != All {
		skipped, found := next, more
		next, more = t.nextFuture(s, number, from, now)
		for ; found && (more && skipped.Before(next) || !more && !skipped.After(now)) && d.Skipped < maxCounted; d.Skipped++ {
			skipped, found = t.Next(s.First, skipped)
		}
	}
	if !more {
		return d
	}
	d.Next = t.Round(s, number, next)
	if !d.Next.Due.After(now) {
		d.Wait = now.Add(catchUpInterval)
	}
	return d
}

// nextFuture returns the first planned time after the given time whose round is not due yet. Number is the number of
// that round. With jitter, that planned time may have passed.
func (t Table) nextFuture(s Series, number int, after, now time.Time) (next time.Time, ok bool) {
	if since := now.Add(-t.Jitter); since.After(after) {
		after = since
	}
	next, ok = t.Next(s.First, after)
	if ok && !t.Round(s, number, next).Due.After(now) {
		next, ok = t.Next(s.First, now)
	}
	return next, ok
}

// Occurrence is a planned time for display.
type Occurrence struct {
	At    time.Time     // in the table's zone
	Shift time.Duration // change of the zone's UTC offset since the previous occurrence
}

// Occurrences returns up to n planned times after the given time. First is the planned time of the first round.
func (t Table) Occurrences(first, after time.Time, n int) []Occurrence {
	zone := time.UTC
	if t.spec != nil {
		zone = t.spec.zone
	}
	var all []Occurrence
	_, lastOffset := after.In(zone).Zone()
	for len(all) < n {
		next, ok := t.Next(first, after)
		if !ok {
			break
		}
		_, offset := next.In(zone).Zone()
		all = append(all, Occurrence{At: next.In(zone), Shift: time.Duration(offset-lastOffset) * time.Second})
		after, lastOffset = next, offset
	}
	return all
}
