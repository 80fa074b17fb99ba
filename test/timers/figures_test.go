package timers

import (
	"fmt"
	"testing"
	"time"

	"delaybroker/broker"
	"delaybroker/broker/streams"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestTimerStatus: the status has the number of pending timers, and the lateness of the fired timers.
func TestTimerStatus(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	harness.BubbleWithBroker(t, harness.TimerConfig(t), func(t *testing.T, c *harness.Client, b *harness.Instance) {
		c.Target("ORDERS", "orders.>")
		var g uint64
		for i := range 20 {
			g = c.Publish(fmt.Sprintf("delaytimer.%d.orders.x", i), "x", "Delay-For", fmt.Sprintf("%dm", 2+i)).Sequence
		}
		c.PublishIf(g, "delaytimer.19.orders.x", "", "Delay-Cancel", "1")
		of := func() (lane broker.LaneStatus) {
			for _, l := range b.Broker.Status().Lanes {
				if l.Kind == string(streams.Timers) {
					return l
				}
			}
			t.Fatal("there is no lane of timers")
			return lane
		}
		time.Sleep(70 * time.Second) // the broker counts the timers once a minute
		if l := of(); l.Pending != 19 || l.Held != 0 || !l.Live || l.Overdue != 0 {
			t.Errorf("with 19 pending timers, the status is %+v", l)
		}
		time.Sleep(12 * time.Minute)
		if l := of(); l.Pending != 7 {
			t.Errorf("with 7 pending timers, the status has %d", l.Pending)
		}
		time.Sleep(10 * time.Minute)
		if l := of(); l.Pending != 0 || l.CommitAge != 0 {
			t.Errorf("without pending timers, the status is %+v", l)
		}
		late := b.Broker.Status().Lateness
		if n := late[streams.Level].Count + late[streams.Timers].Count; n != 19 || late[streams.Level].Sum > 0 {
			t.Errorf("the lateness is %+v, want 19 timers without lateness", late)
		}
	})
}

// TestTimersWithInstances: three instances run, and the active one crashes under load. The target's stream stores each
// timer once. No timer is early, and no timer is late by more than nine seconds.
func TestTimersWithInstances(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	for seed := range 3 { // number of the instance that crashes
		natstest.Subtest(t, fmt.Sprint(seed), func(t *testing.T, s *natstest.Server) {
			cfg := harness.MemberConfig(t)
			cfg.Timers, cfg.TimerHistory = true, -1
			all := harness.StartBrokers(t, s, 3, cfg)
			time.Sleep(10 * time.Second)
			c := harness.NewClient(t, s)
			c.Target("ORDERS", "orders.>")
			sent := 0
			send := func(n int) {
				for range n {
					for _, wait := range []string{"500ms", "2s", "4s", "12s", "45s"} {
						c.Publish(fmt.Sprintf("delaytimer.%d.orders.x", sent), fmt.Sprint(sent), "Delay-For", wait)
						sent++
					}
					time.Sleep(200 * time.Millisecond)
				}
			}
			send(50)
			time.Sleep(time.Duration(seed) * 337 * time.Millisecond)
			all[seed].Crash()
			send(100)
			time.Sleep(2 * time.Minute)
			seen, worst := make(map[string]bool), time.Duration(0)
			for _, a := range c.Arrivals("ORDERS") {
				if seen[a.Body] || a.At.Before(a.Due) {
					t.Errorf("%s is stored twice or early: due %s, stored %s", a.Body, a.Due, a.At)
				}
				seen[a.Body] = true
				worst = max(worst, a.At.Sub(a.Due))
			}
			if len(seen) != sent {
				t.Errorf("%d of %d arrived", len(seen), sent)
			}
			if worst > 9*time.Second {
				t.Errorf("the latest arrived %s late", worst)
			}
			t.Logf("the latest came %s late", worst)
			c.CheckNoTimers()
			c.CheckNoDead()
		})
	}
}
