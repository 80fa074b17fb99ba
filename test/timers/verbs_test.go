package timers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"delaybroker/broker"
	"delaybroker/broker/inspect"
	"delaybroker/broker/message"
	"delaybroker/broker/streams"
	"delaybroker/broker/timer"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestTimersInCommands: without the broker's settings, the command levels shows the number of pending timers, and the
// command where shows whether a timer waits, was cancelled or has ended.
func TestTimersInCommands(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := harness.TimerConfig(t)
		cfg.TimerHistory = 10 * time.Minute
		c := harness.StartBroker(t, s, cfg).NewClient()
		c.Target("ORDERS", "orders.>")
		ctx := context.Background()
		i, err := inspect.Open(s.Connect(), broker.Config{})
		natstest.NoError(t, err)
		if _, err := i.Adopt(ctx, inspect.Overrides{}); err != nil {
			t.Fatal(err)
		}
		where := func(sequence uint64) string {
			t.Helper()
			w, err := inspect.ParseMessageRef(fmt.Sprint("DELAY_TIMERS-", sequence))
			natstest.NoError(t, err)
			found, err := i.Where(ctx, w, 1000, func(uint64, uint64) {})
			natstest.NoError(t, err)
			return found.Answer
		}
		g := c.Publish("delaytimer.a.orders.x", "a", "Delay-For", "1h").Sequence
		h := c.Publish("delaytimer.b.orders.x", "b", "Delay-For", "2m").Sequence
		time.Sleep(11 * time.Second)
		v, err := i.Lanes(ctx, 0)
		natstest.NoError(t, err)
		lanes := 0
		for _, l := range v.Lanes {
			if l.Kind != streams.Timers {
				continue
			}
			lanes++
			if l.Pending != 2 || l.State != inspect.Serving || l.Error != "" || l.Overdue != 0 || l.HeadDue.IsZero() {
				t.Errorf("the timers' lane is %+v", l)
			}
		}
		if lanes != 1 {
			t.Errorf("there are %d lanes of timers", lanes)
		}
		if got := where(g); !strings.HasPrefix(got, "waiting, due in ") {
			t.Errorf("where says of a pending timer %q", got)
		}
		cancel := c.PublishIf(g, "delaytimer.a.orders.x", "", "Delay-Cancel", "1")
		time.Sleep(2 * time.Minute)
		if got := where(g); !strings.Contains(got, "cancelled or replaced") {
			t.Errorf("where says of a cancelled timer %q", got)
		}
		if got := where(cancel); got != "a cancel" {
			t.Errorf("where says of the cancel %q", got)
		}
		if got := where(h); got != "ended: delivered" {
			t.Errorf("where says of a fired timer %q", got)
		}
		c.Publish("delaytimer.c.orders.x", "c", "Delay-Every", "1h")
		time.Sleep(90 * time.Minute)
		round := c.LastEntry("delaytimer.c.orders.x").Sequence
		if got := where(round); got != "waiting, due in 30m; every 1h, round 2" {
			t.Errorf("where says of a round %q", got)
		}
		if a := harness.NewSeriesClient(c).Do(harness.NewChange(timer.Pause, "c", round)); a.Outcome != timer.Paused {
			t.Errorf("the pause returns %+v", a)
		} else if got := where(a.Generation); got != "a series that is paused: every 1h, round 2" {
			t.Errorf("where says of a paused series %q", got)
		}
	})
}

// TestTimersAreCountedOnce: a forecast and the list of pending messages have each timer once, with or without a marker.
// They have no entry that was replaced, moved, cancelled or paused, or has fired.
func TestTimersAreCountedOnce(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := harness.TimerConfig(t)
		cfg.TimerHistory = 10 * time.Hour
		b, c := harness.Start(t, s, cfg)
		c.Target("ORDERS", "orders.>")
		set := func(key, target, wait string, header ...string) uint64 {
			return c.Publish("delaytimer."+key+"."+target, key, append(header, "Delay-For", wait)...).Sequence
		}
		set("replaced", "orders.x", "90m")
		moved := set("moved", "orders.x", "90m")
		cancelled := set("cancelled", "orders.x", "90m")
		paused := set("paused", "orders.x", "90m", "Delay-Every", "1h")
		set("fired", "orders.x", "1s")
		set("once", "orders.x", "30m")
		set("other", "mail.y", "210m")
		set("near", "mail.y", "30s")
		for range 5 {
			c.Publish("delay.1h.orders.z", "z")
		}
		time.Sleep(11 * time.Second) // all timers have a marker
		set("replaced", "orders.x", "150m")
		control := harness.NewSeriesClient(c)
		control.Check(moveTo("moved", moved, time.Now().Add(150*time.Minute)), timer.Moved, 0)
		control.Check(harness.NewChange(timer.Cancel, "cancelled", cancelled), timer.Cancelled, cancelled)
		control.Check(harness.NewChange(timer.Pause, "paused", paused), timer.Paused, 0)
		time.Sleep(12 * time.Second) // the replaced entries are removed

		i := harness.Inspect(t, s, cfg)
		ahead := func(target string, most uint64) inspect.Forecast {
			t.Helper()
			f, err := i.Forecast(t.Context(), inspect.ForecastQuery{
				Length: 5 * time.Hour, Step: time.Hour, Target: target, MaxRead: most,
			})
			natstest.NoError(t, err)
			return f
		}
		for target, want := range map[string][]string{
			"":         {"near", "once", "z", "z", "z", "z", "z", "replaced", "moved", "other"},
			"orders.>": {"once", "z", "z", "z", "z", "z", "replaced", "moved"},
			"mail.y":   {"near", "other"},
		} {
			for _, most := range []uint64{10_000, 0} { // a full scan, and an estimate
				f := ahead(target, most)
				if f.Pending != uint64(len(want)) || f.Unreadable.Messages > 0 || f.Unplaced > 0 || most > 0 && !f.Exact {
					t.Errorf("for %q, reading %d: %+v, want %d pending", target, most, f, len(want))
				}
			}
			l, err := i.Pending(t.Context(), inspect.PendingQuery{Target: target, Limit: 100, MaxRead: 10_000})
			natstest.NoError(t, err)
			var got []string
			for _, w := range l.Messages {
				id, err := message.ParseID(w.ID)
				if err != nil || w.Problem != "" {
					t.Fatalf("%+v: %v", w, err)
				}
				m, err := c.Stream(id.Stream).GetMsg(t.Context(), id.Sequence)
				natstest.NoError(t, err)
				got = append(got, string(m.Data))
			}
			if !slices.Equal(got, want) {
				t.Errorf("for %q, pending are %q, want %q", target, got, want)
			}
		}
		b.Stop()
		set("once", "orders.x", "30m") // no broker removes the replaced entry
		l, err := i.Pending(t.Context(), inspect.PendingQuery{Limit: 100, MaxRead: 10_000})
		if f := ahead("", 10_000); err != nil || f.Pending != 10 || len(l.Messages) != 10 {
			t.Errorf("without a broker, the forecast has %d and the list %d, %v; want 10", f.Pending, len(l.Messages), err)
		}
	})
}

// TestPausedIsPending: messages of a paused target are pending, also in a list by target. The list of pauses does not
// count as a message.
func TestPausedIsPending(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := harness.TimerConfig(t)
		c := harness.StartBroker(t, s, cfg).NewClient()
		harness.MustPause(t, harness.Operator(t, s), "orders.>")
		c.Publish("delay.1s.orders.x", "x")
		c.Publish("delaytimer.k.orders.x", "k", "Delay-For", "1s")
		time.Sleep(10 * time.Second)
		i := harness.Inspect(t, s, cfg)
		for _, target := range []string{"", "orders.*"} {
			for _, most := range []uint64{10_000, 0} {
				f, err := i.Forecast(t.Context(), inspect.ForecastQuery{
					Length: time.Hour, Step: time.Hour, Target: target, MaxRead: most,
				})
				if err != nil || f.Overdue.Messages != 2 || f.Pending != 2 {
					t.Errorf("for %q, reading %d: %+v, %v", target, most, f, err)
				}
			}
			l, err := i.Pending(t.Context(), inspect.PendingQuery{Target: target, Limit: 100, MaxRead: 10_000})
			if err != nil || len(l.Messages) != 2 {
				t.Errorf("for %q: %+v, %v", target, l, err)
			}
		}
	})
}
