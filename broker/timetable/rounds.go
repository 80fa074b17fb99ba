package timetable

import (
	"encoding/binary"
	"hash/fnv"
	"time"
)

const (
	// lateBy is how late a round may be and yet not be missed: other instances have taken over by then.
	lateBy = time.Minute
	// catchUp is the least time between two rounds of one series that are caught up.
	catchUp = 100 * time.Millisecond
	// mostCounted is how many occurrences are counted that are left out at once: those of a cron are to be searched for.
	mostCounted = 100
)

// Series is what all rounds of a table have in common, from when it was set until it is set anew.
type Series struct {
	ID    uint64    // tells it from all others
	First time.Time // planned time of its first round, with which an Every keeps in step
}

// Round is one occurrence of a series.
type Round struct {
	Number  int       // of those that fire, from 1
	Planned time.Time // by the table
	Due     time.Time // Planned with jitter, or when somebody has moved it to
}

// Decision is what is to be done about a round that is due.
type Decision struct {
	Fire bool      // it fires; otherwise it was missed, and Next takes its place
	Next Round     // zero where there is none: the series is over
	Wait time.Time // Next does not fire before that, because it is being caught up; zero for no such time
	Left int       // occurrences that are left out because they were missed; mostCounted stands for more, too
}

// Round is the round of a number that is planned for a time.
func (t Table) Round(s Series, number int, planned time.Time) Round {
	return Round{Number: number, Planned: planned, Due: planned.Add(t.delay(s.ID, number))}
}

// delay is the jitter of a round: the same for everybody who computes it.
func (t Table) delay(series uint64, number int) time.Duration {
	if t.Jitter <= 0 {
		return 0
	}
	h := fnv.New64a()
	_ = binary.Write(h, binary.BigEndian, [2]uint64{series, uint64(number)})
	const millis = uint64(time.Millisecond)
	return time.Duration(h.Sum64() % uint64(t.Jitter) / millis * millis)
}

// Decide decides about a round that is due, and whose predecessor is settled. It is missed where the next one is due
// already, or when it is a minute late.
func (t Table) Decide(s Series, r Round, now time.Time) Decision {
	from := r.Planned
	if moved := !r.Due.Equal(t.Round(s, r.Number, r.Planned).Due); moved && r.Due.After(from) {
		from = r.Due // perhaps beyond rounds that would have followed
	}
	next, more := t.After(s.First, from)
	missed := more && !now.Before(t.Round(s, r.Number+1, next).Due) || now.Sub(r.Due) > lateBy
	d := Decision{Fire: !missed || t.Missed != Skip}
	number := r.Number
	if d.Fire {
		number++
	} else {
		d.Left++
	}
	if t.Rounds > 0 && number > t.Rounds {
		return d
	}
	if missed && t.Missed != All {
		passed, left := next, more
		next, more = t.toCome(s, number, from, now)
		for ; left && (more && passed.Before(next) || !more && !passed.After(now)) && d.Left < mostCounted; d.Left++ {
			passed, left = t.After(s.First, passed)
		}
	}
	if !more {
		return d
	}
	d.Next = t.Round(s, number, next)
	if !d.Next.Due.After(now) {
		d.Wait = now.Add(catchUp)
	}
	return d
}

// toCome is the first planned time after one whose round, of a number, is still to come: by the jitter it may be due
// although its time has passed.
func (t Table) toCome(s Series, number int, after, now time.Time) (next time.Time, ok bool) {
	if since := now.Add(-t.Jitter); since.After(after) {
		after = since
	}
	next, ok = t.After(s.First, after)
	if ok && !t.Round(s, number, next).Due.After(now) {
		next, ok = t.After(s.First, now)
	}
	return next, ok
}

// Coming is a planned time, for people.
type Coming struct {
	At    time.Time     // in the table's zone
	Shift time.Duration // by how much the zone's clocks were changed since the time before
}

// Coming are the next planned times after a given one, n at most.
func (t Table) Coming(first, after time.Time, n int) []Coming {
	zone := time.UTC
	if t.spec != nil {
		zone = t.spec.zone
	}
	var all []Coming
	_, before := after.In(zone).Zone()
	for len(all) < n {
		next, ok := t.After(first, after)
		if !ok {
			break
		}
		_, offset := next.In(zone).Zone()
		all = append(all, Coming{At: next.In(zone), Shift: time.Duration(offset-before) * time.Second})
		after, before = next, offset
	}
	return all
}
