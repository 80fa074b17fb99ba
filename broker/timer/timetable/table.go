package timetable

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"delaybroker/levels"
)

// minInterval is the minimum time between two planned times.
const minInterval = time.Second

// Missed is the policy for missed rounds, which could not fire in time.
type Missed string

const (
	Skip Missed = "skip" // no missed round fires; the series continues with the next future round
	One  Missed = "one"  // one missed round fires late; the series continues with the next future round
	All  Missed = "all"  // each missed round fires, in order
)

// Settings are the fields of a table before they are parsed. An empty field is absent.
type Settings struct {
	Every, Cron, Zone, Jitter, Missed, Rounds string
	Last                                      time.Time // zero for no limit
}

// Table gives the planned times of a recurring timer. [Parse] returns a valid Table.
type Table struct {
	Every  time.Duration // the interval; zero for a cron table
	Cron   string        // the expression, with single spaces; empty for an Every table
	Zone   string        // the time zone of the expression; empty for UTC
	Jitter time.Duration // upper bound of the time from the planned time of a round to its due time
	Missed Missed
	Rounds int       // maximum number of rounds that fire; zero for no limit
	Last   time.Time // no round is planned for a later time; zero for no limit

	spec *spec // the parsed expression; nil for an Every table
}

// Error is the error of a field that cannot be parsed.
type Error struct {
	Setting  string // the name of the field: every, cron, zone, jitter, missed, rounds or last
	Sentence string // the problem and its correction
}

func (e *Error) Error() string { return e.Setting + ": " + e.Sentence }

// errorf returns an Error. The format must quote untrusted text with %.64q.
func errorf(setting, format string, args ...any) *Error {
	return &Error{Setting: setting, Sentence: fmt.Sprintf(format, args...)}
}

// Parse parses a table. The error is an *Error.
func Parse(w Settings) (Table, error) {
	t := Table{Missed: One, Last: w.Last}
	for _, read := range []func(Settings) *Error{t.parseTimes, t.parseJitter, t.parseRounds} {
		if err := read(w); err != nil {
			return Table{}, err
		}
	}
	return t, nil
}

func (t *Table) parseTimes(w Settings) *Error {
	switch {
	case w.Every != "" && w.Cron != "":
		return errorf("every", "every and cron exclude each other: give one of them")
	case w.Cron != "":
		zone, err := loadZone(w.Zone)
		if err == nil {
			t.Cron, t.Zone = strings.Join(strings.Fields(w.Cron), " "), w.Zone
			t.spec, err = parseSpec(w.Cron, zone)
		}
		return err
	case w.Every == "":
		return errorf("every", "no interval and no cron expression: give one of them, such as every 15m")
	case w.Zone != "":
		return errorf("zone", "a zone is only for cron: leave it out")
	}
	d, err := levels.ParseDuration(w.Every)
	if err != nil {
		return errorf("every", "%v", err)
	}
	if d < minInterval {
		return errorf("every", "%.64q is too short: at least %s", w.Every, levels.FormatDuration(minInterval))
	}
	t.Every = d
	return nil
}

func (t *Table) parseJitter(w Settings) *Error {
	if w.Jitter == "" {
		return nil
	}
	d, err := levels.ParseDuration(w.Jitter)
	if err != nil {
		return errorf("jitter", "%v", err)
	}
	if limit := t.Interval(); d >= limit {
		return errorf("jitter", "%.64q is too long for the time between two rounds: want less than %s", w.Jitter,
			levels.FormatDuration(limit))
	}
	t.Jitter = d
	return nil
}

func (t *Table) parseRounds(w Settings) *Error {
	switch m := Missed(w.Missed); m {
	case Skip, One, All:
		t.Missed = m
	case "":
	default:
		return errorf("missed", "%.64q: want skip, one or all", w.Missed)
	}
	if w.Rounds == "" {
		return nil
	}
	n, err := strconv.Atoi(w.Rounds)
	if err != nil || n < 1 || n > math.MaxInt32 {
		return errorf("rounds", "%.64q: want a whole number of at least 1, or leave it out", w.Rounds)
	}
	t.Rounds = n
	return nil
}

// Settings returns the table in the notation of Parse.
func (t Table) Settings() Settings {
	w := Settings{Cron: t.Cron, Zone: t.Zone, Missed: string(t.Missed), Last: t.Last}
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

// String returns the interval or the cron expression and zone, for display.
func (t Table) String() string {
	if t.Every > 0 {
		return "every " + levels.FormatDuration(t.Every)
	}
	return strings.TrimSuffix("cron "+t.Cron+" "+t.Zone, " ")
}

// Interval returns the time between two planned rounds. For a cron table, the result is a lower bound, but a
// clock change may bring two rounds closer.
func (t Table) Interval() time.Duration {
	if t.Every > 0 {
		return t.Every
	}
	return t.spec.interval()
}

// Start returns the first planned time of a table that a client sets now. Requested is the requested time of the first
// round; zero for none. If requested is before now, an Every table plans its rounds at requested plus multiples of the
// interval, and a cron table ignores requested. ok is false if there is no round.
func (t Table) Start(now, requested time.Time) (first time.Time, ok bool) {
	if t.Every > 0 && requested.IsZero() {
		requested = now.Add(t.Every)
	}
	if !requested.IsZero() && !requested.Before(now) {
		return requested, !t.endsBefore(requested)
	}
	return t.Next(requested, now)
}

// Next returns the first planned time after the given time. First is the planned time of the first round. ok is false
// if no planned time follows.
func (t Table) Next(first, after time.Time) (next time.Time, ok bool) {
	if t.Every == 0 {
		next = t.spec.nextTime(after)
		return next, !next.IsZero() && !t.endsBefore(next)
	}
	for after.Sub(first) == math.MaxInt64 { // Sub returns the maximum for a longer difference, too
		first = first.Add(math.MaxInt64 / t.Every * t.Every)
	}
	if !after.Before(first) {
		first = first.Add(after.Sub(first) / t.Every * t.Every).Add(t.Every)
	}
	return first, !t.endsBefore(first)
}

func (t Table) endsBefore(at time.Time) bool {
	return at.UTC().Year() > maxYear || !t.Last.IsZero() && at.After(t.Last)
}
