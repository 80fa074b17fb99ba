package schedules

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/inspect"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/store"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// This file is about schedules in the server's dialect as operators see them: among the timers, under the name
// _schedule.<subject>.

// doVerb asks the control service for a verb about the schedule of a subject.
func doVerb(c *harness.Client, verb, schedule, body string) (a store.Answer) {
	c.T.Helper()
	if code := c.CallService(&a, "delayctl.timer."+verb+"._schedule."+schedule, body); code != "" {
		c.T.Errorf("%s %s is refused: %s", verb, schedule, code)
	}
	return a
}

// checkVerb expects an outcome of a verb, and the schedule's own target in the answer.
func checkVerb(c *harness.Client, want timer.Outcome, target, verb, schedule, body string) store.Answer {
	c.T.Helper()
	a := doVerb(c, verb, schedule, body)
	if a.Outcome != want || a.Key != "_schedule."+schedule || a.Target != target {
		c.T.Errorf("%s %s is answered %+v, want %s, to %s", verb, schedule, a, want, target)
	}
	return a
}

// expecting is the header of what replaces only a schedule with this sequence.
func expecting(sequence uint64) []string {
	return []string{"Nats-Expected-Last-Subject-Sequence", fmt.Sprint(sequence)}
}

// TestVerbsOnSchedules: a schedule that fires once can be looked at, moved, fired and cancelled by its name. Its client
// then sees what it would see of the server's after somebody else has replaced or ended its schedule: expectations
// decide by what stands there now.
func TestVerbsOnSchedules(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, harness.SchedulesOn(t))
		c := harness.NewClient(t, s)
		in := c.Subscribe("orders.>")
		start := time.Now()
		ask := func(name string, wait time.Duration, headers ...string) (uint64, jetstream.ErrorCode) {
			return c.Schedule("schedules.orders."+name, "orders."+name, harness.At(start.Add(wait)), name, headers...)
		}
		moved, _ := ask("moved", time.Hour, "Order", "42", "Nats-Schedule-TTL", "1h", "Nats-Msg-Id", "1")
		ask("fired", time.Hour)
		gone, _ := ask("gone", time.Hour)
		if a := checkVerb(c, timer.Pending, "orders.moved", "get", "schedules.orders.moved", ""); a.Generation != moved ||
			!a.Due.Equal(start.Add(time.Hour)) {
			t.Errorf("get says %+v", a)
		}
		a := checkVerb(c, timer.Moved, "orders.moved", "move", "schedules.orders.moved", `{"for":"10m","word":"w"}`)
		again := checkVerb(c, timer.Moved, "orders.moved", "move", "schedules.orders.moved", `{"for":"10m","word":"w"}`)
		if !a.Due.Equal(start.Add(10*time.Minute)) || again.Generation != a.Generation {
			t.Errorf("moved by ten minutes it is %+v, and asked again %+v", a, again)
		}
		checkVerb(c, timer.Fired, "orders.fired", "fire", "schedules.orders.fired", "")
		if a := checkVerb(c, timer.Cancelled, "orders.gone", "cancel", "schedules.orders.gone",
			fmt.Sprintf(`{"generation":%d}`, gone)); a.Generation != gone {
			t.Errorf("cancel says %+v, want generation %d", a, gone)
		}
		checkVerb(c, timer.NotFound, "", "cancel", "schedules.orders.none", "")
		if _, code := ask("moved", 2*time.Hour, expecting(moved)...); code != 10071 {
			t.Errorf("expecting what was moved its client is answered %d, want 10071", code)
		}
		if _, code := ask("gone", 2*time.Hour, expecting(gone)...); code != 10071 {
			t.Errorf("expecting what was cancelled its client is answered %d, want 10071", code)
		}
		if seq, code := ask("gone", 20*time.Minute, expecting(0)...); seq <= gone {
			t.Errorf("expecting none after a cancel its client is answered %d %d", seq, code)
		}
		synctest.Wait()
		if got := harness.Bodies(in.All()); got != "fired" {
			t.Errorf("at once there came %q, want what was fired", got)
		}
		harness.CheckExactly(t, in, start.Add(10*time.Minute), 1)
		got := in.All()[1]
		for name, want := range map[string]string{
			"Order": "42", "Nats-TTL": "3600", "Delay-Scheduler": "schedules.orders.moved", "Delay-Schedule-Next": "purge",
			"Delay-Msg-Id": "1",
		} {
			if is := got.Header.Get(name); is != want {
				t.Errorf("of what was moved, %s is %q, want %q", name, is, want)
			}
		}
		harness.CheckExactly(t, in, start.Add(20*time.Minute), 2)
		time.Sleep(3 * time.Hour)
		if got := harness.Bodies(in.All()); got != "fired gone moved" {
			t.Errorf("in the end there came %q", got)
		}
		c.CheckNoDead()
		c.CheckNoTimers()
	})
}

// TestMovedScheduleIsNotItsID: the id of a client's request does not stand for what an operator has made of it.
func TestMovedScheduleIsNotItsID(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, harness.SchedulesOn(t))
		c := harness.NewClient(t, s)
		in := c.Subscribe("orders.>")
		start := time.Now()
		ask := func(wait time.Duration, body string) uint64 {
			seq, _ := c.Schedule("schedules.orders.x", "orders.x", harness.At(start.Add(wait)), body, "Nats-Msg-Id", "1")
			return seq
		}
		ask(2*time.Hour, "first")
		time.Sleep(time.Hour) // longer than an id is remembered
		a := checkVerb(c, timer.Moved, "orders.x", "move", "schedules.orders.x", `{"by":"1h"}`)
		time.Sleep(time.Minute)
		if seq := ask(90*time.Minute, "second"); seq <= a.Generation {
			t.Errorf("it is answered %d, as if it had been there, want another behind %d", seq, a.Generation)
		}
		time.Sleep(4 * time.Hour)
		if got := harness.Bodies(in.All()); got != "second" {
			t.Errorf("there came %q, want what was asked for last", got)
		}
	})
}

// TestVerbsOnRepeatingSchedules: one that repeats is paused, resumed, moved, given another table, and fired besides, by
// its name. What is fired besides is a message as its rounds are. Whoever knows only the sequence of its
// acknowledgement replaces it all the same, paused or not.
func TestVerbsOnRepeatingSchedules(t *testing.T) {
	natstest.Long(t)
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, harness.SchedulesOn(t))
		c := harness.NewClient(t, s)
		c.Create(jetstream.StreamConfig{Name: "MAIL", Subjects: []string{"mail.>"}, AllowRollup: true})
		in := c.Subscribe("mail.>")
		start := time.Now()
		g, _ := c.Schedule("schedules.mail.a", "mail.a", "@every 1h", "a", "Nats-Schedule-Rollup", "sub")
		const name = "schedules.mail.a"
		if a := checkVerb(c, timer.Pending, "mail.a", "get", name, ""); a.Recurring == nil || a.Recurring.Series != g {
			t.Errorf("get says %+v", a)
		}
		checkVerb(c, timer.Fired, "mail.a", "fire", name, "")
		synctest.Wait()
		if got := harness.Bodies(in.All()); got != "a" {
			t.Fatalf("at once there came %q, want what was fired besides", got)
		}
		first := in.All()[0].Header
		for header, want := range map[string]string{
			"Nats-Rollup": "sub", "Delay-Scheduler": name,
			"Delay-Schedule-Next": start.Add(time.Hour).UTC().Format(time.RFC3339Nano),
		} {
			if is := first.Get(header); is != want {
				t.Errorf("of what was fired besides, %s is %q, want %q", header, is, want)
			}
		}
		harness.CheckExactly(t, in, start.Add(time.Hour), 1)
		checkVerb(c, timer.Moved, "mail.a", "move", name, `{"by":"10m"}`)
		harness.CheckExactly(t, in, start.Add(2*time.Hour+10*time.Minute), 2)
		harness.CheckExactly(t, in, start.Add(3*time.Hour), 3) // by the table
		checkVerb(c, timer.Paused, "mail.a", "pause", name, "")
		time.Sleep(150 * time.Minute) // until 5h30m
		checkVerb(c, timer.Paused, "mail.a", "get", name, "")
		checkVerb(c, timer.Moved, "mail.a", "retime", name, `{"every":"30m"}`)
		checkVerb(c, timer.Pending, "mail.a", "resume", name, fmt.Sprintf(`{"series":%d}`, g))
		harness.CheckExactly(t, in, start.Add(6*time.Hour), 4)
		checkVerb(c, timer.Paused, "mail.a", "pause", name, "")
		if _, code := c.Schedule(name, "mail.b", "@every 1h", "b", expecting(g+100)...); code != 10071 {
			t.Errorf("expecting another sequence its client is answered %d", code)
		}
		if seq, code := c.Schedule(name, "mail.b", "@every 1h", "b", expecting(g)...); seq <= g {
			t.Errorf("expecting its own sequence its client is answered %d %d", seq, code)
		}
		harness.CheckExactly(t, in, start.Add(7*time.Hour), 5)
		checkVerb(c, timer.Cancelled, "mail.b", "cancel", name, "")
		time.Sleep(5 * time.Hour)
		if got := harness.Bodies(in.All()); got != "a×5 b" {
			t.Errorf("in the end there came %q", got)
		}
		c.CheckNoDead()
		c.CheckNoTimers()
	})
}

// planned is a broker with timers and schedules, of which those to orders are four: a timer, and three schedules whose
// subjects do not say so. There is a schedule to mail whose subject is below orders, and a timer to mail.
func planned(t *testing.T, s *natstest.Server) (c *harness.TimerClient) {
	t.Helper()
	cfg := harness.SchedulesOn(t)
	cfg.Schedules = append(cfg.Schedules, harness.SchedulesOn(t).Schedules[1])
	cfg.Schedules[2].Subjects = "orders.plan.>" // to mail
	harness.StartBroker(t, s, cfg)
	c = harness.NewSeriesClient(harness.NewClient(t, s))
	c.Publish("delaytimer.k.orders.expire", "k", "Delay-For", "1h")
	c.Publish("delaytimer.k.mail.x", "m", "Delay-For", "1h")
	start := time.Now()
	for subject, when := range map[string]string{
		"schedules.orders.a": harness.At(start.Add(time.Hour)), "schedules.orders.b": "@every 1h",
		"schedules.orders.c": "@hourly",
	} {
		if seq, code := c.Schedule(subject, "orders.expire", when, "s"); seq == 0 {
			t.Fatalf("%s is answered %d", subject, code)
		}
	}
	if seq, code := c.Schedule("orders.plan.x", "mail.x", harness.At(start.Add(time.Hour)), "p"); seq == 0 {
		t.Fatalf("the schedule to mail is answered %d", code)
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

// TestSchedulesByTarget: a list and a forecast for a target have the schedules to it, by the target that they were
// given, and none whose subject only looks so.
func TestSchedulesByTarget(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		c := planned(t, s)
		i := harness.Inspect(t, s, harness.SchedulesOn(t))
		for target, want := range map[string]int{"": 6, "orders.>": 4, "orders.expire": 4, "mail.>": 2, "other.>": 0} {
			l, err := i.Pending(t.Context(), inspect.PendingQuery{Target: target, Limit: 100, MaxRead: 1000})
			if err != nil || len(l.Messages) != want || l.More {
				t.Errorf("for %q, %d are pending: %+v, %v; want %d", target, len(l.Messages), l, err, want)
			}
			f, err := i.Forecast(t.Context(), inspect.ForecastQuery{
				For: 24 * time.Hour, By: time.Hour, Target: target, MaxRead: 1000,
			})
			if err != nil || f.Pending != uint64(want) || !f.Exact {
				t.Errorf("for %q, %d are ahead, exactly %t: %v; want %d", target, f.Pending, f.Exact, err, want)
			}
			f, err = i.Forecast(t.Context(), inspect.ForecastQuery{For: 24 * time.Hour, By: time.Hour, Target: target})
			if err != nil || f.Pending != uint64(want) {
				t.Errorf("for %q, %d are ahead by a sample: %v; want %d", target, f.Pending, err, want)
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
			{store.Filter{Under: "schedules.orders"}, schedules},
			{store.Filter{Under: "orders"}, []string{"_schedule.orders.plan.x", "k"}},
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
			var pages []string // one by one, in the order of the stream
			for after, before := uint64(0), uint64(0); ; {
				l, err := c.Timers.List(t.Context(), tt.filter, store.Page{After: after, Limit: 1})
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
				t.Errorf("%+v lists page by page %q, want %q", tt.filter, pages, tt.want)
			}
		}
	})
}

// TestForecastOfFewSchedules: where a sample meets none of those to a target, there may be some: it does not say that
// there are none, exactly.
func TestForecastOfFewSchedules(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, harness.SchedulesOn(t))
		c := harness.NewClient(t, s)
		for n := range 400 {
			c.Schedule(fmt.Sprintf("schedules.orders.%d", n), "orders.x", harness.At(time.Now().Add(time.Hour)), "s")
		}
		i := harness.Inspect(t, s, harness.SchedulesOn(t))
		look := inspect.ForecastQuery{For: 24 * time.Hour, By: time.Hour, Target: "other.>", Sample: 20}
		f, err := i.Forecast(t.Context(), look)
		if err != nil || f.Exact || f.Pending != 0 {
			t.Errorf("by a sample of 20 there are %d, exactly %t: %v; want none, not exactly", f.Pending, f.Exact, err)
		}
		look.MaxRead = 1000
		if f, err = i.Forecast(t.Context(), look); err != nil || !f.Exact || f.Pending != 0 {
			t.Errorf("reading all there are %d, exactly %t: %v; want none, exactly", f.Pending, f.Exact, err)
		}
	})
}

// TestBulkOnSchedules: what a dry run counts is what is done, schedules too; and what would be refused, it says.
func TestBulkOnSchedules(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		c := planned(t, s)
		in := []*harness.Inbox{c.Subscribe("orders.>"), c.Subscribe("mail.>")}
		start := time.Now()
		bulk := func(b store.Bulk, want string) store.Done {
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
			t.Errorf("a dry run without the secret says %+v, %v", d, err)
		}
		move.DryRun, move.Page.UpTo = false, dry.UpTo
		if d, err := unsealed.Bulk(t.Context(), move); err != nil || d.Refused != 3 || !d.Sealed {
			t.Errorf("without the secret it says %+v, %v; want the schedules refused", d, err)
		}
		bulk(move, "3 map[moved:3] 0")
		time.Sleep(time.Until(start.Add(89 * time.Minute)))
		if got := harness.Bodies(in[0].All()) + harness.Bodies(in[1].All()); got != "m p" {
			t.Errorf("before they are due there came %q", got)
		}
		cancel := store.Bulk{Verb: timer.Cancel, Filter: far.Filter, DryRun: true}
		bulk(cancel, "4 map[] 0")
		cancel.DryRun = false
		bulk(cancel, "4 map[cancelled:4] 0")
		time.Sleep(3 * time.Hour)
		if got := harness.Bodies(in[0].All()); got != "" {
			t.Errorf("of what was cancelled there came %q", got)
		}
		c.CheckNoTimersBut("DELAY_DEAD")
	})
}

// TestScheduleWithAnotherTarget: who names the target of a schedule does not touch one that has another by now.
func TestScheduleWithAnotherTarget(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		c := planned(t, s)
		for _, verb := range []timer.Verb{timer.Get, timer.Cancel, timer.Fire} {
			w := store.Change{Request: timer.Request{Verb: verb}, Key: "_schedule.schedules.orders.a", Target: "orders.other"}
			if a := c.Check(w, timer.Conflict, 0); a.Why != "its target is orders.expire" {
				t.Errorf("%s says %+v", verb, a)
			}
		}
		w := harness.NewChange(timer.Set, "_schedule.schedules.orders.a", 0)
		w.Target = "orders.expire"
		if _, err := c.Timers.Do(t.Context(), w); err == nil {
			t.Error("a set under the name of a schedule is carried out")
		}
	})
}

// TestTenantsSchedules: the right to ask about what begins with a subject is the right to the schedules of that
// subject, wherever they lead, and to no others.
func TestTenantsSchedules(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		c := planned(t, s)
		var l store.Listing
		c.CallService(&l, "delayctl.timers.schedules.orders", `{"state":"pending"}`)
		if got := keys(l.Timers); len(got) != 3 || got[0] != "_schedule.schedules.orders.a" {
			t.Errorf("below schedules.orders there are %q, want the three", got)
		}
		l = store.Listing{}
		c.CallService(&l, "delayctl.timers.orders", `{"target":"orders.>"}`)
		if got := keys(l.Timers); !slices.Equal(got, []string{"k"}) {
			t.Errorf("below orders, to orders there are %q, want no schedule", got)
		}
		var d store.Done
		c.CallService(&d, "delayctl.cancel-all.orders", `{"target":"orders.>"}`)
		if d.Outcomes[timer.Cancelled] != 1 {
			t.Errorf("who may cancel what begins with orders has done %+v, want the timer alone", d)
		}
		d = store.Done{}
		c.CallService(&d, "delayctl.cancel-all.schedules.orders", `{}`)
		if d.Outcomes[timer.Cancelled] != 3 {
			t.Errorf("who may cancel what begins with schedules.orders has done %+v, want the three", d)
		}
		d = store.Done{}
		c.CallService(&d, "delayctl.cancel-all", `{"target":"mail.>"}`)
		if d.Outcomes[timer.Cancelled] != 2 {
			t.Errorf("who may cancel all has done %+v, want the timer and the schedule to mail", d)
		}
	})
}

// TestForgedDelivery: what a client writes of a schedule on a timer of its own is not believed without our seal.
func TestForgedDelivery(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, harness.SchedulesOn(t))
		c := harness.NewClient(t, s)
		in := c.Subscribe("orders.>")
		c.Publish("delaytimer.fire-1.orders.x", "x", "Delay-For", "1s", "Delay-Scheduler", "schedules.orders.x",
			"Delay-Rollup", "sub")
		time.Sleep(2 * time.Second)
		got := in.All()
		if len(got) != 1 || got[0].Header.Get("Delay-Scheduler") != "" || got[0].Header.Get("Nats-Rollup") != "" {
			t.Errorf("there came %+v, want it without what only the broker says", got)
		}
	})
}

// TestScheduleThatItsTargetRefuses: a TTL or a rollup that the target's stream does not allow is refused at the
// request, as by the server; where no stream of the account tells, it is stored.
func TestScheduleThatItsTargetRefuses(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, harness.SchedulesOn(t))
		c := harness.NewClient(t, s)
		c.Create(jetstream.StreamConfig{Name: "PLAIN", Subjects: []string{"orders.plain.>"}})
		c.Create(jetstream.StreamConfig{
			Name: "FULL", Subjects: []string{"orders.full.>"}, AllowMsgTTL: true, AllowRollup: true,
		})
		for _, tt := range []struct {
			target, header, value string
			want                  jetstream.ErrorCode
		}{
			{"orders.plain.x", "Nats-Schedule-TTL", "1h", 10166},
			{"orders.plain.x", "Nats-Schedule-TTL", "never", 10166},
			{"orders.plain.x", "Nats-Schedule-Rollup", "sub", 10192},
			{"orders.plain.x", "Order", "42", 0},
			{"orders.full.x", "Nats-Schedule-TTL", "1h", 0},
			{"orders.full.x", "Nats-Schedule-Rollup", "sub", 0},
			{"orders.nobody", "Nats-Schedule-TTL", "1h", 0},
		} {
			seq, code := c.Schedule("schedules.orders.x", tt.target, harness.At(time.Now().Add(time.Hour)), "x",
				tt.header, tt.value)
			if code != tt.want || seq == 0 && tt.want == 0 {
				t.Errorf("%s: %s to %s is answered %d, want %d", tt.header, tt.value, tt.target, code, tt.want)
			}
		}
	})
}
