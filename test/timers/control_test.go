package timers

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"delaybroker/broker/timer"
	"delaybroker/broker/timer/change"
	"delaybroker/broker/timer/entry"
	"delaybroker/broker/timer/store"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

func moveTo(key string, generation uint64, until time.Time) change.Change {
	w := harness.NewChange(timer.Move, key, generation)
	w.Until = until
	return w
}

// TestVerbsWithBrokerAndWithout checks outcomes of get, cancel, move and fire, and the later deliveries, with a running
// broker and without a broker.
func TestVerbsWithBrokerAndWithout(t *testing.T) {
	t.Parallel()
	for _, down := range []bool{false, true} {
		natstest.Subtest(t, fmt.Sprint("down ", down), func(t *testing.T, s *natstest.Server) {
			cfg := harness.TimerConfig(t)
			cfg.TimerHistory = time.Hour
			b := harness.StartBroker(t, s, cfg)
			c := harness.NewTimerClient(harness.NewClient(t, s))
			in := c.Subscribe("orders.>")
			c.Publish("delaytimer.fired.orders.x", "fired", "Delay-For", "1s")
			time.Sleep(2 * time.Second)
			if down {
				b.Stop()
			}
			begun := time.Now()
			set := func(key string, wait string) uint64 {
				return c.Publish("delaytimer."+key+".orders.x", key, "Delay-For", wait, "X-Mine", "yes").Sequence
			}
			c.Check(harness.NewChange(timer.Get, "none", 0), timer.NotFound, 0)
			c.Check(harness.NewChange(timer.Cancel, "none", 0), timer.NotFound, 0)
			c.Check(harness.NewChange(timer.Move, "none", 0), timer.NotFound, 0)
			c.Check(harness.NewChange(timer.Fire, "none", 0), timer.NotFound, 0)

			g := set("cancelled", "10m")
			a := c.Check(harness.NewChange(timer.Get, "cancelled", 0), timer.Pending, g)
			if !a.Due.Equal(begun.Add(10 * time.Minute)) {
				t.Errorf("the timer is due %s", a.Due)
			}
			c.Check(harness.NewChange(timer.Cancel, "cancelled", g), timer.Cancelled, g)
			time.Sleep(time.Second)
			c.Check(harness.NewChange(timer.Cancel, "cancelled", g), timer.Cancelled, g) // again
			c.Check(harness.NewChange(timer.Cancel, "cancelled", 0), timer.Cancelled, g)
			c.Check(harness.NewChange(timer.Get, "cancelled", 0), timer.Cancelled, g)
			c.Check(moveTo("cancelled", g, begun), timer.Conflict, g)
			c.Check(harness.NewChange(timer.Fire, "cancelled", 0), timer.NotFound, g)

			g = set("any", "10m")
			c.Check(harness.NewChange(timer.Cancel, "any", 0), timer.Cancelled, g)

			g = set("moved", "10m")
			until := begun.Add(20*time.Minute + 1)
			moved := c.Check(moveTo("moved", g, until), timer.Moved, 0)
			if moved.Generation <= g || !moved.Due.Equal(until) {
				t.Errorf("the moved timer is %d, due %s; want above %d, due %s", moved.Generation, moved.Due, g, until)
			}
			c.Check(harness.NewChange(timer.Cancel, "moved", g), timer.Conflict, moved.Generation)
			c.Check(harness.NewChange(timer.Fire, "moved", g), timer.Conflict, moved.Generation)
			by := harness.NewChange(timer.Move, "moved", 0)
			by.By = 5 * time.Minute
			until = until.Add(by.By)
			if a := c.Check(by, timer.Moved, 0); !a.Due.Equal(until) {
				t.Errorf("moved by 5m, the timer is due %s, want %s", a.Due, until)
			}

			g = set("now", "10m")
			c.Check(harness.NewChange(timer.Fire, "now", g), timer.Fired, 0)
			c.Check(harness.NewChange(timer.Cancel, "fired", 0), timer.TooLate, 0)
			c.Check(moveTo("fired", 0, until), timer.TooLate, 0)
			c.Check(harness.NewChange(timer.Fire, "fired", 0), timer.TooLate, 0)
			if a := c.Check(harness.NewChange(timer.Get, "fired", 0), timer.Fired, 0); a.Delivery != entry.Delivered {
				t.Errorf("the delivery of the fired timer is %q", a.Delivery)
			}
			if down {
				harness.StartBroker(t, s, cfg)
			}
			time.Sleep(time.Second)
			harness.CheckBodies(t, in.Arrivals(), "fired now")
			harness.CheckExactly(t, in, until, 2)
			if got := in.Arrivals()[2]; got.Body != "moved" || got.Header.Get("X-Mine") != "yes" ||
				got.Header.Get("Delay-Word") != "" {
				t.Errorf("%q %v arrived", got.Body, got.Header)
			}
			time.Sleep(90 * time.Minute)
			harness.CheckCount(t, in.Arrivals(), 3)
			c.CheckNoTimers()
			c.CheckNoDead()
		})
	}
}

// TestOutcomeAfterReplacement: a request about a generation gets the outcome of that generation, even if another client
// has set the timer again over its firing, outcome or cancel.
func TestOutcomeAfterReplacement(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := harness.TimerConfig(t)
		cfg.TimerHistory = time.Hour
		b := harness.StartBroker(t, s, cfg)
		c := harness.NewTimerClient(harness.NewClient(t, s))
		c.Subscribe("orders.>")
		set := func(key string) uint64 {
			return c.Publish("delaytimer."+key+".orders.x", key, "Delay-For", "1s").Sequence
		}
		over := set("over")
		time.Sleep(2 * time.Second)
		b.Stop()
		fired, cancelled := set("fired"), set("cancelled")
		c.Fire("delaytimer.fired.orders.x", "ghost")
		c.Check(harness.NewChange(timer.Cancel, "cancelled", cancelled), timer.Cancelled, cancelled)
		for _, key := range []string{"over", "fired", "cancelled"} {
			set(key)
			set(key)
		}
		last := set("other")
		c.Check(harness.NewChange(timer.Cancel, "other", last-1), timer.Conflict, last)
		c.Check(harness.NewChange(timer.Cancel, "over", over), timer.TooLate, over)
		c.Check(harness.NewChange(timer.Cancel, "fired", fired), timer.TooLate, fired)
		c.Check(moveTo("fired", fired, time.Now()), timer.TooLate, fired)
		c.Check(harness.NewChange(timer.Fire, "fired", fired), timer.TooLate, fired)
		c.Check(harness.NewChange(timer.Cancel, "cancelled", cancelled), timer.Cancelled, cancelled)
		c.Check(moveTo("cancelled", cancelled, time.Now()), timer.Conflict, cancelled)
	})
}

// TestOutcomesAroundDue: an outcome at any time around the due time is final. A cancelled timer never arrives. A timer
// whose cancel was too late has arrived. A timer that was moved or fired arrives once.
func TestOutcomesAroundDue(t *testing.T) {
	t.Parallel()
	for _, history := range []time.Duration{-1, time.Minute} {
		natstest.Subtest(t, history.String(), func(t *testing.T, s *natstest.Server) {
			cfg := harness.TimerConfig(t)
			cfg.TimerHistory = history
			harness.StartBroker(t, s, cfg)
			c := harness.NewTimerClient(harness.NewClient(t, s))
			in := c.Subscribe("orders.>")
			outcomes := make(map[timer.Outcome]int)
			for i := range 240 {
				verb := []timer.Verb{timer.Cancel, timer.Move, timer.Fire}[i%3]
				off := time.Duration(i/6-20) * 50 * time.Microsecond // ±1 ms
				due := time.Now().Add(20 * time.Millisecond)
				key := fmt.Sprint("k", i)
				g := c.Publish("delaytimer."+key+".orders.x", key, "Delay-Until",
					due.UTC().Format(time.RFC3339Nano)).Sequence
				if i%6 < 3 {
					g = 0
				}
				before := len(in.Arrivals())
				time.Sleep(time.Until(due.Add(off)))
				w := harness.NewChange(verb, key, g)
				if verb == timer.Move {
					w.For = "30ms"
				}
				a := c.Do(w)
				outcomes[a.Outcome]++
				time.Sleep(100 * time.Millisecond)
				synctest.Wait()
				came := len(in.Arrivals()) - before
				want := 1
				if a.Outcome == timer.Cancelled {
					want = 0
				}
				if came != want || a.Outcome == timer.Unknown || a.Outcome == timer.Conflict {
					t.Errorf("the outcome of %s %s after the due time is %s, but %d arrived", verb, off, a.Outcome, came)
				}
			}
			t.Log(outcomes)
			c.CheckNoDead()
		})
	}
}

// TestMoveKeepsMessageID: a timer was set with a Nats-Msg-Id. A move within the duplicate window of the stream
// succeeds, although the server takes a second publish with the id for a duplicate. The timer keeps the id.
func TestMoveKeepsMessageID(t *testing.T) {
	t.Parallel()
	harness.Bubble(t, harness.TimerConfig(t), func(t *testing.T, plain *harness.Client) {
		c := harness.NewTimerClient(plain)
		in := c.Subscribe("orders.>")
		g := c.Publish("delaytimer.k.orders.x", "k", "Delay-For", "10m", "Nats-Msg-Id", "mine").Sequence
		until := time.Now().Add(20 * time.Minute)
		if a := c.Check(moveTo("k", g, until), timer.Moved, 0); a.Generation <= g {
			t.Errorf("after the move, the timer has the generation %d, want above %d", a.Generation, g)
		}
		harness.CheckExactly(t, in, until, 0)
		if got := in.Arrivals()[0].Header.Get("Delay-Msg-Id"); got != "mine" {
			t.Errorf("the message has the id %q", got)
		}
	})
}

// TestListShowsLastEntries: without a broker, the stream keeps replaced entries. A page has only the last entry of each
// timer, and a bulk request changes only pending timers.
func TestListShowsLastEntries(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		b := harness.StartBroker(t, s, harness.TimerConfig(t))
		b.Stop()
		c := harness.NewTimerClient(harness.NewClient(t, s))
		var want uint64
		for range 3 {
			want = c.Publish("delaytimer.replaced.orders.x", "x", "Delay-For", "10m").Sequence
		}
		c.Publish("delaytimer.*.orders.x", "noise", "Delay-For", "10m")
		g := c.Publish("delaytimer.cancelled.orders.x", "x", "Delay-For", "10m").Sequence
		c.Check(harness.NewChange(timer.Cancel, "cancelled", g), timer.Cancelled, g)
		upTo := g + 1
		c.Publish("delaytimer.later.orders.x", "x", "Delay-For", "10m")
		for limit := 1; limit <= 10; limit++ {
			var got []string
			page := store.Page{UpTo: upTo, Limit: limit}
			for {
				l, err := c.Timers.List(context.Background(), store.Filter{Targets: []string{"orders.>"}}, page)
				natstest.NoError(t, err)
				for _, r := range l.Timers {
					got = append(got, fmt.Sprint(r.Key, " ", r.State, " ", r.Generation))
				}
				if page.Start = l.Next; l.Next == 0 {
					break
				}
			}
			if want := fmt.Sprintf("[replaced pending %d cancelled cancelled %d]", want, g); fmt.Sprint(got) != want {
				t.Errorf("pages of %d list %v, want %s", limit, got, want)
			}
		}
		d, err := c.Timers.Bulk(context.Background(), store.Bulk{Verb: timer.Cancel})
		if err != nil || d.Matched != 2 || d.Outcomes[timer.Cancelled] != 2 {
			t.Errorf("the cancel of all returns %+v, %v, want 2", d, err)
		}
	})
}

// TestBulk: a repeated page of a bulk request moves no timer twice. The request does not change timers that do not
// match.
func TestBulk(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	harness.Bubble(t, harness.TimerConfig(t), func(t *testing.T, plain *harness.Client) {
		c := harness.NewTimerClient(plain)
		in := c.Subscribe("orders.>")
		c.Subscribe("payments.>")
		begun := time.Now()
		for i := range 50 {
			c.Publish(fmt.Sprintf("delaytimer.order-%d.orders.x", i), "o", "Delay-For", "10m")
		}
		c.Publish("delaytimer.other.orders.x", "other", "Delay-For", "10m")
		c.Publish("delaytimer.order-1.payments.x", "payment", "Delay-For", "10m")
		c.Publish("delaytimer.order-99.orders.x", "later", "Delay-For", "90m")
		ctx := context.Background()
		b := store.Bulk{Verb: timer.Move, By: 5 * time.Minute, DryRun: true, Filter: store.Filter{
			Targets: []string{"orders.>"}, Key: "order-*", DueTo: begun.Add(time.Hour),
		}}
		dry, err := c.Timers.Bulk(ctx, b)
		if err != nil || dry.Matched != 50 || len(dry.Outcomes) > 0 {
			t.Fatalf("a dry run returns %+v, %v", dry, err)
		}
		b.DryRun = false
		b.Page = store.Page{UpTo: dry.UpTo, Limit: 20}
		var sum store.BulkResult
		for pages := 1; ; pages++ {
			d, err := c.Timers.Bulk(ctx, b)
			natstest.NoError(t, err)
			again, err := c.Timers.Bulk(ctx, b) // as after a lost answer
			if err != nil || pages < 3 && again.Matched > 20 || pages == 3 && again.Matched > 0 {
				t.Errorf("page %d repeated returns %+v, %v", pages, again, err)
			}
			sum.Add(d)
			sum.Add(again)
			if b.Page.Start = max(d.Next, again.Next); b.Page.Start == 0 {
				break
			}
		}
		if sum.Matched != 50 || sum.Outcomes[timer.Moved] != 50 || sum.Refused > 0 {
			t.Errorf("all pages return %+v", sum)
		}
		time.Sleep(time.Until(begun.Add(15*time.Minute - 1)))
		synctest.Wait()
		harness.CheckBodies(t, in.Arrivals(), "other")
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		harness.CheckBodies(t, in.Arrivals(), "o×50 other")
		b = store.Bulk{Verb: timer.Cancel, Filter: store.Filter{Targets: []string{"orders.>", "payments.>"}}}
		if d, err := c.Timers.Bulk(ctx, b); err != nil || d.Outcomes[timer.Cancelled] != 1 {
			t.Errorf("the cancel of all timers returns %+v, %v", d, err)
		}
		time.Sleep(2 * time.Hour)
		harness.CheckBodies(t, in.Arrivals(), "o×50 other")
		c.CheckNoTimers()
	})
}
