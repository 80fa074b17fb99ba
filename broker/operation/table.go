package operation

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"delaybroker/broker/inspect"
	"delaybroker/broker/message"
	"delaybroker/broker/text"
	"delaybroker/broker/timer/change"
	"delaybroker/broker/timer/timetable"
	"delaybroker/levels"
)

// tableChoice has the parameters of the times of a schedule.
type tableChoice struct {
	settings timetable.Settings
	rounds   int
	pause    string        // the number of dead letters in a row that pause a new schedule
	first    inspect.Bound // the requested time of the first round
	wait     string        // the same, if it is a duration
}

// params returns the parameters of the table itself.
func (t *tableChoice) params() []*Param {
	s := &t.settings
	missed := word(&s.Missed, "missed",
		"which missed rounds fire after an outage or a pause: skip (none), one (default) or all")
	missed.Choices = []string{string(timetable.Skip), string(timetable.One), string(timetable.All)}
	return []*Param{
		word(&s.Every, "every", "interval: 15m, 1h30m; at least 1s"),
		word(&s.Cron, "cron", "cron expression: '0 3 * * *', six fields with seconds, @daily"),
		word(&s.Zone, "tz", "with --cron: the time zone, such as Europe/Berlin (default: UTC)"),
		Count(&t.rounds, "rounds", "maximum number of rounds; 0 for no maximum", 0, 0, NoBound),
		Parsed(&s.Last, "last", "no round after this time (RFC 3339)", ParseMoment), missed,
		word(&s.Jitter, "jitter", "delay each round by a part of this duration: 5m"),
	}
}

// parse returns the table.
func (t *tableChoice) parse() (timetable.Table, error) {
	if t.rounds > 0 {
		t.settings.Rounds = strconv.Itoa(t.rounds)
	}
	table, err := timetable.Parse(t.settings)
	if problem, ok := errors.AsType[*timetable.Error](err); ok {
		name := cmp.Or(map[string]string{"zone": "tz"}[problem.Setting], problem.Setting)
		return table, invalidParam(name, "%s", problem.Sentence)
	}
	return table, err
}

// newParams returns the parameters of a new schedule.
func (t *tableChoice) newParams() []*Param {
	first := Parsed(&t.first, "first",
		"time of the first round, from which --every counts: a duration from now, or a time (RFC 3339)",
		func(text string) (inspect.Bound, error) {
			b, err := inspect.ParseBound(text)
			if b.Offset != nil {
				t.wait = text
			}
			return b, err
		})
	return append(t.params(), first)
}

// header adds the headers of a set with the table.
func (t *tableChoice) header(h message.Header) error {
	if _, err := t.parse(); err != nil {
		return err
	}
	s := t.settings
	for name, value := range map[string]string{
		message.HeaderEvery: s.Every, message.HeaderCron: s.Cron, message.HeaderZone: s.Zone,
		message.HeaderLast: text.Moment(s.Last), message.HeaderMissed: s.Missed, message.HeaderJitter: s.Jitter,
		message.HeaderRounds: s.Rounds, message.HeaderFor: t.wait, // counts from the server's time
		message.HeaderUntil: text.Moment(t.first.Instant), message.HeaderPauseAfter: t.pause,
	} {
		if value != "" {
			h[name] = []string{value}
		}
	}
	return nil
}

// RoundTime is a line of schedules next.
type RoundTime struct {
	At     time.Time `json:"at"` // in the schedule's zone
	Zone   string    `json:"zone"`
	Shift  float64   `json:"clocks_changed_seconds,omitempty"` // change of the zone's offset since the previous time
	Clocks string    `json:"clocks,omitempty"`                 // the same in words
}

const maxNext = 10_000

func nextTimes(Bounds) *Use {
	var c timerChoice
	var t tableChoice
	var table timetable.Table // of --every or --cron
	var n int
	number := Count(&n, "count", "number of times", 5, 1, maxNext)
	number.Short = "n"
	u := &Use{Params: slices.Concat(c.scheduleName(), t.newParams(), []*Param{number})}
	hasTable := func() bool { return t.settings.Every+t.settings.Cron != "" }
	u.Offline = hasTable
	u.Check = func() (err error) {
		switch {
		case hasTable() == (c.key != ""):
			return invalid("want NAME, or --every, or --cron")
		case hasTable():
			table, err = t.parse()
			return err
		}
		return c.checkName()
	}
	u.Look = func(ctx context.Context, d *Desk, show func(any) error) (End, error) {
		if hasTable() { // by the local clock: nothing is requested
			start, ok := table.Start(time.Now(), t.first.Time(time.Now()))
			if !ok {
				return End{}, invalid("no time is left before --last")
			}
			if table.Rounds > 0 {
				n = min(n, table.Rounds)
			}
			return showTimes(table, start, start, n, show)
		}
		if err := c.findTarget(ctx, d); err != nil {
			return c.absent(err)
		}
		s, err := d.read(ctx, c.key, c.target)
		if err != nil {
			return End{}, err
		}
		recurring := change.RecurringOf(s.Entry)
		if recurring == nil {
			return c.absent(errNoSchedule)
		}
		series := recurring.Definition
		if maxRounds := series.Table.Rounds; maxRounds > 0 {
			n = min(n, maxRounds-recurring.Round+1)
		}
		end, err := showTimes(series.Table, series.First, series.Planned, n, show)
		first, round := s.Entry.Round()
		switch planned := series.Table.Round(first, round.Number, round.Planned); {
		case recurring.Paused:
			end.Notes = append(end.Notes, "the schedule is paused: these rounds do not fire until it is resumed")
		case !round.Due.Equal(planned.Due):
			end.Notes = append(end.Notes, "the first of these rounds was moved: it is due "+text.Moment(round.Due))
		}
		return end, err
	}
	return u
}

// showTimes shows at most n planned times, beginning with the first that is not before from. The argument first is the
// planned time of round 1.
func showTimes(table timetable.Table, first, from time.Time, n int, show func(any) error) (end End, err error) {
	for _, c := range table.Occurrences(first, from.Add(-1), n) {
		line := RoundTime{At: c.At, Shift: c.Shift.Seconds()}
		line.Zone, _ = c.At.Zone()
		switch {
		case c.Shift > 0:
			line.Clocks = "the clocks went forward by " + levels.FormatDuration(c.Shift)
		case c.Shift < 0:
			line.Clocks = "the clocks went back by " + levels.FormatDuration(-c.Shift)
		}
		if err := show(line); err != nil {
			return End{}, err
		}
	}
	if table.Jitter > 0 {
		end.Notes = append(end.Notes, "jitter: each round is due less than "+levels.FormatDuration(table.Jitter)+" later")
	}
	return end, nil
}
