package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"delaybroker/broker/text"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/store"
	"delaybroker/broker/timer/timetable"
	"delaybroker/cmd/delaybroker/terminal"
	"delaybroker/levels"
)

const maxNext = 10_000

func (a *app) schedulesNextCommand() *cobra.Command {
	var table tableFlags
	var target string
	var n int
	c := &cobra.Command{
		Use:   "next (NAME | --every DURATION | --cron EXPRESSION [--tz ZONE]) [-n COUNT]",
		Short: "Print the next times of a schedule, or of an interval or cron expression",
		Long: `Print the next times of a schedule, with their zone, and mark the changes of the zone's clocks. With --every or
--cron the command sends no request.

If a clock change skips a time, the round fires right after the gap. If a time occurs twice, the round fires once, at
the first of the two. A cron expression for every hour fires in each hour, including the repeated one.

exit codes: 0 shown, 1 failed, 2 bad arguments or settings, 4 there is no such schedule`,
		Example: `  delaybroker schedules next nightly -n 5
  delaybroker schedules next --cron '30 2 * * *' --tz Europe/Berlin -n 300 | grep clocks`,
		Args: argumentsBetween(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			hasTable := table != (tableFlags{})
			switch {
			case hasTable == (len(args) > 0):
				return fmt.Errorf("%w: want NAME, or --every, or --cron", errUsage)
			case hasTable:
				return a.printTableTimes(table, n)
			}
			return a.withSchedule(cmd.Context(), args[0], target, func(_ string, s timer.State) error {
				recurring := store.RecurringOf(s.Entry)
				if maxRounds := recurring.Definition.Table.Rounds; maxRounds > 0 {
					n = min(n, maxRounds-recurring.Round+1)
				}
				a.showNext(recurring.Definition.Table, recurring.Definition.First, recurring.Definition.Planned, n)
				a.printDeviation(s)
				return nil
			})
		},
	}
	table.addFlags(c)
	addCountFlag(c.Flags(), &n, "count", "n", 5, 1, maxNext, "number of times")
	addTargetFlag(c, &target)
	return c
}

// printDeviation prints why the next rounds differ from the schedule's times: a pause, or a moved round.
func (a *app) printDeviation(s timer.State) {
	series, round := s.Entry.Round()
	planned := store.RecurringOf(s.Entry).Definition.Table.Round(series, round.Number, round.Planned)
	switch {
	case store.RecurringOf(s.Entry).Paused:
		fmt.Fprintln(a.Err, "the schedule is paused: these rounds do not fire until it is resumed")
	case !round.Due.Equal(planned.Due):
		fmt.Fprintf(a.Err, "the first of these rounds was moved: it is due %s\n", text.Moment(round.Due))
	}
}

// printTableTimes prints the times of a schedule that has these flags and is set now, by the local clock. It sends no
// request.
func (a *app) printTableTimes(o tableFlags, n int) error {
	now := time.Now()
	table, first, err := o.table(now)
	if err != nil {
		return err
	}
	start, ok := table.Start(now, first)
	if !ok {
		return fmt.Errorf("%w: no time is left before --last", errUsage)
	}
	if table.Rounds > 0 {
		n = min(n, table.Rounds)
	}
	a.showNext(table, start, start, n)
	return nil
}

// upcomingTime is a line of next.
type upcomingTime struct {
	At    time.Time `json:"at"`
	Zone  string    `json:"zone"`
	Shift float64   `json:"clocks_changed_seconds,omitempty"` // change of the zone's offset since the previous time
}

// showNext prints at most n planned times, beginning with the first that is not before from. The argument first is the
// planned time of round 1.
func (a *app) showNext(table timetable.Table, first, from time.Time, n int) {
	rows := a.Sheet([]terminal.Column{{Name: "time"}, {Name: "zone"}, {Name: "in"}, {Name: "clocks", Drop: 1}})
	now := time.Now() // "in" is relative to the local clock
	for _, c := range table.Occurrences(first, from.Add(-1), n) {
		line := upcomingTime{At: c.At, Shift: c.Shift.Seconds()}
		line.Zone, _ = c.At.Zone()
		if a.AsJSON(line) {
			continue
		}
		rows.Add(c.At.Format(time.RFC3339Nano), line.Zone, text.Span(c.At.Sub(now).Truncate(time.Second)),
			describeClockChange(c.Shift))
	}
	if a.JSON {
		return
	}
	rows.Print()
	if table.Jitter > 0 {
		fmt.Fprintf(a.Err, "jitter: each round is due less than %s later\n", levels.FormatDuration(table.Jitter))
	}
}

// describeClockChange describes a change of the clocks.
func describeClockChange(shift time.Duration) string {
	switch {
	case shift > 0:
		return "the clocks went forward by " + levels.FormatDuration(shift)
	case shift < 0:
		return "the clocks went back by " + levels.FormatDuration(-shift)
	}
	return ""
}
