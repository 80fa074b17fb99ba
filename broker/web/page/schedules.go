package page

import (
	"context"
	"net/url"
	"time"

	"delaybroker/broker/inspect"
	"delaybroker/broker/timer/store"
)

// nextTimes is the number of planned times shown of a schedule, after the pending round.
const nextTimes = 3

// A scheduled row is a recurring timer with its planned times after the pending round.
type scheduled struct {
	store.Row
	Next []coming `json:"next"`
}

// coming is a planned time, and the local time in its zone.
type coming struct {
	At    time.Time `json:"at"`
	Clock string    `json:"clock"`
	Shift float64   `json:"clocks_changed_seconds,omitempty"` // change of the zone's offset since the previous time
}

// schedules lists the recurring timers.
func (p *Page) schedules(ctx context.Context, i *inspect.Inspector, v url.Values) (any, error) {
	t, err := target(v)
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
	all := struct {
		Schedules []scheduled `json:"schedules"`
		Next      uint64      `json:"next,omitempty"` // start of the next page; zero on the last
		At        time.Time   `json:"at"`
	}{[]scheduled{}, l.Next, l.At}
	for _, row := range l.Timers {
		all.Schedules = append(all.Schedules, scheduled{row, comingOf(row)})
	}
	return answer{shell{"schedules", "ls"}.flag("--target", t).flag("--name", f.Key).String(), all}, err
}

func comingOf(r store.Row) []coming {
	all := []coming{}
	of := r.Recurring.Of
	for n, c := range of.Table.Upcoming(of.First, of.Planned, nextTimes) {
		if of.Table.Rounds > 0 && r.Recurring.Round+n >= of.Table.Rounds {
			break
		}
		all = append(all, coming{c.At.UTC(), c.At.Format("2006-01-02 15:04:05 MST"), c.Shift.Seconds()})
	}
	return all
}
