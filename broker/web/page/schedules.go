package page

import (
	"context"
	"net/url"
	"time"

	"delaybroker/broker/inspect"
	"delaybroker/broker/timer/store"
)

// maxUpcoming is the maximum number of planned times in the row of a schedule.
const maxUpcoming = 3

// A scheduleRow is a recurring timer, with the planned times of the rounds after the pending round.
type scheduleRow struct {
	store.Row
	Next []plannedTime `json:"next"`
}

// A plannedTime is the due time of a later round.
type plannedTime struct {
	At    time.Time `json:"at"`
	Clock string    `json:"clock"`                            // local time in the schedule's zone
	Shift float64   `json:"clocks_changed_seconds,omitempty"` // change of the zone's offset since the previous round
}

func (p *Page) schedules(ctx context.Context, i *inspect.Inspector, v url.Values) (any, error) {
	t, err := parseTarget(v)
	if err != nil {
		return nil, err
	}
	f := store.Filter{Key: v.Get("key"), Recurring: true}
	if t != "" {
		f.Targets = []string{t}
	}
	page, err := timerPage(v)
	if err != nil {
		return nil, err
	}
	l, err := i.Timers().List(ctx, f, page)
	listed := struct {
		Schedules []scheduleRow `json:"schedules"`
		Next      uint64        `json:"next,omitempty"` // for the parameter "after"; zero on the last page
		At        time.Time     `json:"at"`
	}{[]scheduleRow{}, l.Next, l.At}
	for _, row := range l.Timers {
		listed.Schedules = append(listed.Schedules, scheduleRow{row, upcomingRounds(row)})
	}
	return answer{shell{"schedules", "ls"}.flag("--target", t).flag("--name", f.Key).String(), listed}, err
}

// upcomingRounds returns the planned times of the rounds after the pending round.
func upcomingRounds(r store.Row) []plannedTime {
	times := []plannedTime{}
	series := r.Recurring.Definition
	for n, c := range series.Table.Occurrences(series.First, series.Planned, maxUpcoming) {
		if series.Table.Rounds > 0 && r.Recurring.Round+n >= series.Table.Rounds {
			break
		}
		times = append(times, plannedTime{c.At.UTC(), c.At.Format("2006-01-02 15:04:05 MST"), c.Shift.Seconds()})
	}
	return times
}
