package test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"delaybroker/broker"
	"delaybroker/broker/inspect"
	"delaybroker/broker/layout"
	"delaybroker/broker/timer"
	"delaybroker/test/natstest"
)

// TestTimersInVerbs: what levels and where tell of timers, without the broker's settings: how many are pending, and
// what became of one.
func TestTimersInVerbs(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := timersOn(t)
		cfg.TimerHistory = 10 * time.Minute
		startBroker(t, s, cfg)
		c := newClient(t, s)
		c.target("ORDERS", "orders.>")
		ctx := context.Background()
		i, err := inspect.Open(s.Connect(), broker.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := i.Adopt(ctx, inspect.Given{}); err != nil {
			t.Fatal(err)
		}
		where := func(sequence uint64) string {
			t.Helper()
			w, err := inspect.ParseWanted(fmt.Sprint("DELAY_TIMERS-", sequence))
			if err != nil {
				t.Fatal(err)
			}
			found, err := i.Where(ctx, w, 1000, func(uint64, uint64) {})
			if err != nil {
				t.Fatal(err)
			}
			return found.Answer
		}
		g := c.publish("delaytimer.a.orders.x", "a", "Delay-For", "1h").Sequence
		h := c.publish("delaytimer.b.orders.x", "b", "Delay-For", "2m").Sequence
		time.Sleep(10 * time.Second)
		v, err := i.Look(ctx, 0)
		if err != nil {
			t.Fatal(err)
		}
		lanes := 0
		for _, l := range v.Lanes {
			if l.Kind != layout.Timers {
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
			t.Errorf("a pending one is %q", got)
		}
		cancel := c.expect(g, "delaytimer.a.orders.x", "", "Delay-Cancel", "1")
		time.Sleep(2 * time.Minute)
		if got := where(g); !strings.Contains(got, "cancelled or replaced") {
			t.Errorf("a cancelled one is %q", got)
		}
		if got := where(cancel); got != "a cancel" {
			t.Errorf("its cancel is %q", got)
		}
		if got := where(h); got != "over: delivered" {
			t.Errorf("one that has fired is %q", got)
		}
		c.publish("delaytimer.c.orders.x", "c", "Delay-Every", "1h")
		time.Sleep(90 * time.Minute)
		round := c.last("delaytimer.c.orders.x").Sequence
		if got := where(round); got != "waiting, due in 30m; every 1h, round 2" {
			t.Errorf("a round is %q", got)
		}
		if a := controlsSeries(c).do(wish(timer.Pause, "c", round)); a.Outcome != timer.Paused {
			t.Errorf("it is %+v", a)
		} else if got := where(a.Generation); got != "a series that is paused: every 1h, round 2" {
			t.Errorf("a paused one is %q", got)
		}
	})
}
