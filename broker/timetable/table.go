package timetable

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"delaybroker/levels"
)

// Least is the shortest time between two rounds.
const Least = time.Second

// Missed is what becomes of rounds that could not fire in time.
type Missed string

// What becomes of them.
const (
	Skip Missed = "skip" // nothing: the next round that is still to come
	One  Missed = "one"  // one fires late, and then the next that is still to come
	All  Missed = "all"  // each fires, in order
)

// Words are a table as somebody writes it. Last is zero for none.
type Words struct {
	Every, Cron, Zone, Jitter, Missed, Rounds string
	Last                                      time.Time
}

// Table is a time table. Make one with [Parse].
type Table struct {
	Every  time.Duration // zero for a cron
	Cron   string        // as it was written; empty for an Every
	Zone   string        // of a cron; empty for UTC
	Jitter time.Duration // a round is due less than this after its planned time
	Missed Missed
	Rounds int       // so many fire; zero for no end
	Last   time.Time // no round is planned for later; zero for no end

	spec *spec // of a cron
}

// Error says which word cannot be read, and what to change.
type Error struct {
	Word     string // every, cron, zone, jitter, missed, rounds or last
	Sentence string
}

func (e *Error) Error() string { return e.Word + ": " + e.Sentence }

func errorf(word, format string, args ...any) *Error {
	return &Error{Word: word, Sentence: fmt.Sprintf(format, args...)}
}

// Parse reads a table. The error is an *Error.
func Parse(w Words) (Table, error) {
	t := Table{Missed: One, Last: w.Last}
	for _, read := range []func(Words) *Error{t.when, t.jitter, t.rounds} {
		if err := read(w); err != nil {
			return Table{}, err
		}
	}
	return t, nil
}

func (t *Table) when(w Words) *Error {
	switch {
	case w.Every != "" && w.Cron != "":
		return errorf("every", "it recurs every so often, or by cron: one of them")
	case w.Cron != "":
		return t.cron(w)
	case w.Every == "":
		return errorf("every", "how often? as in 15m")
	case w.Zone != "":
		return errorf("zone", "a zone is for cron, which goes by the clock on a wall: leave it out")
	}
	d, err := levels.ParseDuration(w.Every)
	if err != nil {
		return errorf("every", "%v", err)
	}
	if d < Least {
		return errorf("every", "%s is too often: at least %s", excerpt(w.Every), levels.FormatDuration(Least))
	}
	t.Every = d
	return nil
}

func (t *Table) cron(w Words) *Error {
	zone, err := loadZone(w.Zone)
	if err != nil {
		return err
	}
	s, err := parseSpec(w.Cron, zone)
	if err != nil {
		return err
	}
	t.Cron, t.Zone, t.spec = strings.Join(strings.Fields(w.Cron), " "), w.Zone, s
	return nil
}

func (t *Table) jitter(w Words) *Error {
	if w.Jitter == "" {
		return nil
	}
	d, err := levels.ParseDuration(w.Jitter)
	if err != nil {
		return errorf("jitter", "%v", err)
	}
	if least := t.Interval(); d >= least {
		return errorf("jitter", "%s is as long as the time between two rounds: less than %s", excerpt(w.Jitter),
			levels.FormatDuration(least))
	}
	t.Jitter = d
	return nil
}

func (t *Table) rounds(w Words) *Error {
	switch m := Missed(w.Missed); m {
	case Skip, One, All:
		t.Missed = m
	case "":
	default:
		return errorf("missed", "%s: want skip, one or all", excerpt(w.Missed))
	}
	if w.Rounds == "" {
		return nil
	}
	n, err := strconv.Atoi(w.Rounds)
	if err != nil || n < 1 || n > math.MaxInt32 {
		return errorf("rounds", "%s: want a whole number of at least 1, or leave it out", excerpt(w.Rounds))
	}
	t.Rounds = n
	return nil
}

// Words is the table as Parse reads it.
func (t Table) Words() Words {
	w := Words{Cron: t.Cron, Zone: t.Zone, Missed: string(t.Missed), Last: t.Last}
	if t.Every > 0 {
		w.Every = levels.FormatDuration(t.Every)
	}
	if t.Jitter > 0 {
		w.Jitter = levels.FormatDuration(t.Jitter)
	}
	if t.Rounds > 0 {
		w.Rounds = strconv.Itoa(t.Rounds)
	}
	return w
}

// String is the table for people: when, without the rest.
func (t Table) String() string {
	if t.Every > 0 {
		return "every " + levels.FormatDuration(t.Every)
	}
	return strings.TrimSuffix("cron "+t.Cron+" "+t.Zone, " ")
}

// Interval is the least time between two planned rounds; of a cron, it may be less than that. Where clocks go forward,
// a time that is skipped may come closer to the next.
func (t Table) Interval() time.Duration {
	if t.Every > 0 {
		return t.Every
	}
	return t.spec.interval()
}

// Start is the first planned time of a table that is set at a time. Asked is when the first round is wanted; zero
// leaves that open. An Every whose asked time has passed keeps in step with it; of a cron, it is as if nothing was
// asked. Ok is false where no round is left.
func (t Table) Start(set, asked time.Time) (first time.Time, ok bool) {
	switch {
	case !asked.IsZero() && !asked.Before(set):
		return asked, !t.over(asked)
	case t.Every > 0 && asked.IsZero():
		first = set.Add(t.Every)
		return first, !t.over(first)
	}
	return t.After(asked, set)
}

// After is the first planned time after a given one. First is that of the first round. Ok is false where there is none.
func (t Table) After(first, after time.Time) (next time.Time, ok bool) {
	if t.Every > 0 {
		next = t.everyAfter(first, after)
	} else if next = t.spec.after(after); next.IsZero() {
		return next, false
	}
	return next, !t.over(next)
}

func (t Table) over(at time.Time) bool {
	return at.UTC().Year() > mostYear || !t.Last.IsZero() && at.After(t.Last)
}

func (t Table) everyAfter(first, after time.Time) time.Time {
	for after.Sub(first) == math.MaxInt64 { // it is longer than a Duration can be
		first = first.Add(math.MaxInt64 / t.Every * t.Every)
	}
	if after.Before(first) {
		return first
	}
	return first.Add(after.Sub(first) / t.Every * t.Every).Add(t.Every)
}

// excerpt is a foreign word in a sentence: not too long, and readable.
func excerpt(s string) string {
	const most = 64
	if len(s) > most {
		s = s[:most] + "…"
	}
	return strconv.Quote(s)
}
