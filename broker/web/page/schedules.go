package page

import (
	"context"
	"net/url"
	"time"

	"delaybroker/broker/inspect"
	"delaybroker/broker/timer/store"
)

// nextTimes is how many times behind the pending round are shown of a schedule.
const nextTimes = 3

// A scheduled row is a timer that recurs, and its planned times behind the pending round.
type scheduled struct {
	store.Row
	Next []coming `json:"next"`
}

// coming is a planned time, and what the clocks of its zone show then.
type coming struct {
	At    time.Time `json:"at"`
	Clock string    `json:"clock"`
	Shift float64   `json:"clocks_changed_seconds,omitempty"` // since the time before
}

// schedules lists what recurs.
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
		Next      uint64      `json:"next,omitempty"` // for the next page; zero on the last
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
