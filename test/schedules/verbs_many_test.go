package schedules

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"delaybroker/broker/inspect"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/store"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// startScene runs a broker with timers and schedules. A timer and three schedules have a target below orders; the
// subjects of these schedules are not below orders. A timer and a schedule have a target below mail; the subject of
// this schedule is below orders.
func startScene(t *testing.T, s *natstest.Server) (c *harness.TimerClient) {
	t.Helper()
	cfg := harness.ScheduleConfig(t)
	cfg.Schedules = append(cfg.Schedules, harness.ScheduleConfig(t).Schedules[1])
	cfg.Schedules[2].Subjects = "orders.plan.>" // to mail
	harness.StartBroker(t, s, cfg)
	c = harness.NewSeriesClient(harness.NewClient(t, s))
	c.Publish("delaytimer.k.orders.expire", "k", "Delay-For", "1h")
	c.Publish("delaytimer.k.mail.x", "m", "Delay-For", "1h")
	start := time.Now()
	for subject, when := range map[string]string{
		"schedules.orders.a": harness.AtExpression(start.Add(time.Hour)), "schedules.orders.b": "@every 1h",
		"schedules.orders.c": "@hourly",
	} {
		if seq, code := c.Schedule(subject, "orders.expire", when, "s"); seq == 0 {
			t.Fatalf("%s is answered %d", subject, code)
		}
	}
	if seq, code := c.Schedule("orders.plan.x", "mail.x", harness.AtExpression(start.Add(time.Hour)), "p"); seq == 0 {
		t.Fatalf("the answer to the schedule for mail is %d", code)
	}
	return c
}

func keys(rows []store.Row) (all []string) {
	for _, r := range rows {
		all = append(all, r.Key)
	}
	slices.Sort(all)
	return all
}

// TestSchedulesByTarget: a list and a forecast for a target have the schedules with that target, and no schedule of
// which only the subject matches.
func TestSchedulesByTarget(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		c := startScene(t, s)
		i := harness.Inspect(t, s, harness.ScheduleConfig(t))
		for target, want := range map[string]int{"": 6, "orders.>": 4, "orders.expire": 4, "mail.>": 2, "other.>": 0} {
			l, err := i.Pending(t.Context(), inspect.PendingQuery{Target: target, Limit: 100, MaxRead: 1000})
			if err != nil || len(l.Messages) != want || l.More {
				t.Errorf("for %q, %d are pending: %+v, %v; want %d", target, len(l.Messages), l, err, want)
			}
			f, err := i.Forecast(t.Context(), inspect.ForecastQuery{
				Length: 24 * time.Hour, Step: time.Hour, Target: target, MaxRead: 1000,
			})
			if err != nil || f.Pending != uint64(want) || !f.Exact {
				t.Errorf("the forecast for %q has %d messages, exact %t: %v; want %d", target, f.Pending, f.Exact, err, want)
			}
			f, err = i.Forecast(t.Context(), inspect.ForecastQuery{Length: 24 * time.Hour, Step: time.Hour, Target: target})
			if err != nil || f.Pending != uint64(want) {
				t.Errorf("the sampled forecast for %q has %d messages: %v; want %d", target, f.Pending, err, want)
			}
		}
		schedules := []string{"_schedule.schedules.orders.a", "_schedule.schedules.orders.b", "_schedule.schedules.orders.c"}
		for _, tt := range []struct {
			filter store.Filter
			want   []string
		}{
			{store.Filter{Targets: []string{"orders.>"}}, append(slices.Clone(schedules), "k")},
			{store.Filter{Targets: []string{"orders.>", "*.expire"}}, append(slices.Clone(schedules), "k")},
			{store.Filter{Targets: []string{"mail.>"}}, []string{"_schedule.orders.plan.x", "k"}},
			{store.Filter{Targets: []string{"orders.>"}, Key: "_schedule.*"}, schedules},
			{store.Filter{Targets: []string{"orders.>"}, Key: "_schedule.schedules.orders.b"}, schedules[1:2]},
			{store.Filter{Targets: []string{"mail.>"}, Key: "_schedule.schedules.orders.b"}, nil},
			{store.Filter{Targets: []string{"orders.>"}, Key: "k*"}, []string{"k"}},
			{store.Filter{Key: "_schedule.orders.*"}, []string{"_schedule.orders.plan.x"}},
			{store.Filter{Prefix: "schedules.orders"}, schedules},
			{store.Filter{Prefix: "orders"}, []string{"_schedule.orders.plan.x", "k"}},
			{store.Filter{Recurring: true, Targets: []string{"orders.>"}}, schedules[1:]},
		} {
			l, err := c.Timers.List(t.Context(), tt.filter, store.Page{})
			if got := keys(l.Timers); err != nil || !slices.Equal(got, tt.want) {
				t.Errorf("%+v lists %q, %v; want %q", tt.filter, got, err, tt.want)
			}
			for _, r := range l.Timers {
				if r.Key != "k" && len(tt.filter.Targets) > 0 && r.Target != "orders.expire" && r.Target != "mail.x" {
					t.Errorf("the target of %s is %s", r.Key, r.Target)
				}
			}
			var pages []string // pages of one timer, in the order of the stream
			for after, before := uint64(0), uint64(0); ; {
				l, err := c.Timers.List(t.Context(), tt.filter, store.Page{Start: after, Limit: 1})
				if err != nil || len(l.Timers) > 0 && l.Timers[0].Generation < before {
					t.Fatalf("%+v behind %d lists %+v, %v", tt.filter, after, l, err)
				}
				pages = append(pages, keys(l.Timers)...)
				if after = l.Next; after == 0 {
					break
				}
				before = l.Timers[0].Generation
			}
			if slices.Sort(pages); !slices.Equal(pages, tt.want) {
				t.Errorf("the pages of %+v list %q, want %q", tt.filter, pages, tt.want)
			}
		}
	})
}

// TestForecastOfFewSchedules: if a sample contains no schedule for a target, the forecast does not claim to be exact.
func TestForecastOfFewSchedules(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		c := harness.StartBroker(t, s, harness.ScheduleConfig(t)).NewClient()
		for n := range 400 {
			c.Schedule(fmt.Sprintf("schedules.orders.%d", n), "orders.x", harness.AtExpression(time.Now().Add(time.Hour)), "s")
		}
		i := harness.Inspect(t, s, harness.ScheduleConfig(t))
		look := inspect.ForecastQuery{Length: 24 * time.Hour, Step: time.Hour, Target: "other.>", Sample: 20}
		f, err := i.Forecast(t.Context(), look)
		if err != nil || f.Exact || f.Pending != 0 {
			t.Errorf("a sample of 20 has %d, exact %t: %v; want none, not exact", f.Pending, f.Exact, err)
		}
		look.MaxRead = 1000
		if f, err = i.Forecast(t.Context(), look); err != nil || !f.Exact || f.Pending != 0 {
			t.Errorf("the full scan has %d, exact %t: %v; want none, exact", f.Pending, f.Exact, err)
		}
	})
}

// TestBulkOnSchedules: a bulk request changes exactly the timers and schedules that its dry run counts. The dry run
// also reports the changes that the broker would refuse.
func TestBulkOnSchedules(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		c := startScene(t, s)
		in := []*harness.Inbox{c.Subscribe("orders.>"), c.Subscribe("mail.>")}
		start := time.Now()
		bulk := func(b store.Bulk, want string) store.BulkResult {
			t.Helper()
			d, err := c.Timers.Bulk(t.Context(), b)
			if got := fmt.Sprint(d.Matched, d.Outcomes, d.Refused); err != nil || got != want {
				t.Errorf("%s, dry %t, says %s, %v: %s; want %s", b.Verb, b.DryRun, got, err, d.Why, want)
			}
			return d
		}
		c.Publish("delaytimer.bad.orders.x", "x", "Delay-For", "1h", "Delay-Expires", "yesterday")
		synctest.Wait()
		far := store.Bulk{Verb: timer.Move, By: 370 * 24 * time.Hour, Filter: store.Filter{Targets: []string{"orders.>"}}}
		c.Timers.Policy.MaxDelay = 366 * 24 * time.Hour
		far.DryRun = true
		dry := bulk(far, "4 map[] 4")
		far.DryRun = false
		far.Page.UpTo = dry.UpTo
		bulk(far, "4 map[] 4")
		move := store.Bulk{Verb: timer.Move, By: 30 * time.Minute, Filter: far.Filter, DryRun: true}
		dry = bulk(move, "4 map[] 0")
		unsealed := harness.CopyTimers(c.Timers)
		unsealed.Policy.Keys = nil
		if d, err := unsealed.Bulk(t.Context(), move); err != nil || d.Refused > 0 || d.Sealed {
			t.Errorf("a dry run without the secret returns %+v, %v", d, err)
		}
		move.DryRun, move.Page.UpTo = false, dry.UpTo
		if d, err := unsealed.Bulk(t.Context(), move); err != nil || d.Refused != 3 || !d.Sealed {
			t.Errorf("without the secret, the result is %+v, %v; want a refusal of the schedules", d, err)
		}
		bulk(move, "3 map[moved:3] 0")
		time.Sleep(time.Until(start.Add(89 * time.Minute)))
		if got := harness.Bodies(in[0].Arrivals()) + harness.Bodies(in[1].Arrivals()); got != "m p" {
			t.Errorf("%q arrived early", got)
		}
		cancel := store.Bulk{Verb: timer.Cancel, Filter: far.Filter, DryRun: true}
		bulk(cancel, "4 map[] 0")
		cancel.DryRun = false
		bulk(cancel, "4 map[cancelled:4] 0")
		time.Sleep(3 * time.Hour)
		if got := harness.Bodies(in[0].Arrivals()); got != "" {
			t.Errorf("the cancelled %q arrived", got)
		}
		c.CheckNoTimersBut("DELAY_DEAD")
	})
}

// TestTenantsSchedules: the right to request the timers below a subject includes the schedules of that subject,
// whatever their targets, and no others.
func TestTenantsSchedules(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		c := startScene(t, s)
		var l store.Listing
		c.CallService(&l, "delayctl.timers.schedules.orders", `{"state":"pending"}`)
		if got := keys(l.Timers); len(got) != 3 || got[0] != "_schedule.schedules.orders.a" {
			t.Errorf("the list below schedules.orders has %q, want the three schedules", got)
		}
		l = store.Listing{}
		c.CallService(&l, "delayctl.timers.orders", `{"target":"orders.>"}`)
		if got := keys(l.Timers); !slices.Equal(got, []string{"k"}) {
			t.Errorf("the list below orders with a target below orders has %q, want no schedule", got)
		}
		var d store.BulkResult
		c.CallService(&d, "delayctl.cancel-all.orders", `{"target":"orders.>"}`)
		if d.Outcomes[timer.Cancelled] != 1 {
			t.Errorf("a client with the right to cancel below orders cancelled %+v, want only the timer", d)
		}
		d = store.BulkResult{}
		c.CallService(&d, "delayctl.cancel-all.schedules.orders", `{}`)
		if d.Outcomes[timer.Cancelled] != 3 {
			t.Errorf("a client with the right to cancel below schedules.orders cancelled %+v, want the three schedules", d)
		}
		d = store.BulkResult{}
		c.CallService(&d, "delayctl.cancel-all", `{"target":"mail.>"}`)
		if d.Outcomes[timer.Cancelled] != 2 {
			t.Errorf("a client with the right to cancel all cancelled %+v, want the timer and the schedule for mail", d)
		}
	})
}
