package timers

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/message"
	"delaybroker/test/harness"
	"delaybroker/test/harness/static"
	"delaybroker/test/natstest"
)

// forgetCursor removes the cursor of the timers' stream.
func forgetCursor(c *harness.Client) {
	c.T.Helper()
	if m := c.LastEntry("delaysys.armed"); m == nil {
		c.T.Error("there is no cursor")
	} else if err := c.Stream("DELAY_TIMERS").DeleteMsg(context.Background(), m.Sequence); err != nil {
		c.T.Fatal(err)
	}
}

// TestCrashAfterOutcome: an instance stores the outcome of a timer, and crashes before it removes the timer's entries.
// A client sets the timer again. The next instance does not deliver the first timer again.
func TestCrashAfterOutcome(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := harness.TimerConfig(t)
		cfg.TimerHistory = time.Minute
		stuck := harness.Mute(t, s, &cfg, "STREAM.MSG.DELETE.DELAY_TIMERS")
		b, c := harness.Start(t, s, cfg)
		in := c.Subscribe("orders.>")
		c.Publish("delaytimer.k.orders.x", "old", "Delay-For", "900ms")
		time.Sleep(800 * time.Millisecond)
		stuck.Store(true)
		time.Sleep(time.Second)
		b.Crash()
		stuck.Store(false)
		if m := c.LastEntry("delaytimer.k.orders.x"); m == nil || m.Header.Get("Delay-Over") == "" {
			t.Fatalf("the last entry is %+v, want the outcome delivered", m)
		}
		again := time.Now()
		c.Publish("delaytimer.k.orders.x", "new", "Delay-For", "10m")
		harness.StartBroker(t, s, cfg)
		time.Sleep(12 * time.Second)
		if n := harness.Pending(c, "DELAY_TIMERS"); n != 2 {
			t.Errorf("there are %d entries, want the new set and the cursor", n)
		}
		harness.CheckExactly(t, in, again.Add(10*time.Minute), 1)
		time.Sleep(5 * time.Minute)
		harness.CheckBodies(t, in.Arrivals(), "new old")
		c.CheckNoTimers()
	})
}

// TestTimerReplacedWhileFiring: before a firing is delivered, a client sets or cancels the timer without an
// expectation, and the broker crashes. The next broker delivers the firing once, even if the timer has no marker, and
// the new set fires at its due time.
func TestTimerReplacedWhileFiring(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	for name, tt := range map[string]struct {
		wait  string
		lose  func(c *harness.Client, g uint64)
		over  []string // headers of the entry that the client stores after the firing
		comes bool     // whether that entry fires, ten minutes later
	}{
		"set, and its marker waits":       {"10m", func(*harness.Client, uint64) {}, []string{"Delay-For", "10m"}, true},
		"cancelled, and its marker waits": {"10m", func(*harness.Client, uint64) {}, []string{"Delay-Cancel", "1"}, false},
		"noise, and its marker waits":     {"10m", func(*harness.Client, uint64) {}, nil, false},
		"set, and it has no marker":       {"1500ms", func(*harness.Client, uint64) {}, []string{"Delay-For", "10m"}, true},
		"cancelled, and it has no marker": {"1500ms", func(*harness.Client, uint64) {}, []string{"Delay-Cancel", "1"}, false},
		"its marker is lost": {"10m", func(c *harness.Client, _ uint64) { c.Purge("DELAY_10m"); c.Purge("DELAY_1m") },
			[]string{"Delay-For", "10m"}, true},
		"its marker and its set are lost": {"10m", func(c *harness.Client, g uint64) {
			c.Purge("DELAY_10m")
			c.Purge("DELAY_1m")
			if err := c.Stream("DELAY_TIMERS").DeleteMsg(context.Background(), g); err != nil {
				c.T.Error(err)
			}
		}, []string{"Delay-Cancel", "1"}, false},
	} {
		for _, history := range []time.Duration{-1, time.Minute} {
			natstest.Subtest(t, fmt.Sprintf("%s, history %s", name, history), func(t *testing.T, s *natstest.Server) {
				cfg := harness.TimerConfig(t)
				cfg.TimerHistory = history
				b, c := harness.Start(t, s, cfg)
				in := c.Subscribe("orders.>")
				set := time.Now()
				g := c.Publish("delaytimer.k.orders.x", "old", "Delay-For", tt.wait).Sequence
				wait, _ := time.ParseDuration(tt.wait)
				time.Sleep(min(wait/2, time.Minute))
				b.Stop()
				time.Sleep(10 * time.Minute)
				c.Fire("delaytimer.k.orders.x", "ghost")
				tt.lose(c, g)
				start := time.Now()
				c.Publish("delaytimer.k.orders.x", "new", tt.over...)
				time.Sleep(time.Millisecond)
				harness.StartBroker(t, s, cfg)
				time.Sleep(time.Second)
				want := message.ID{Stream: "DELAY_TIMERS", Sequence: g, At: set}.String()
				if got := in.Arrivals(); len(got) != 1 || got[0].Body != "old" || got[0].ID != want {
					t.Fatalf("after the start of a broker, %+v arrived, want the fired timer with the id %s", got, want)
				}
				if tt.comes {
					harness.CheckExactly(t, in, start.Add(10*time.Minute), 1)
				}
				time.Sleep(15 * time.Minute)
				want = map[bool]string{false: "old", true: "new old"}[tt.comes]
				harness.CheckBodies(t, in.Arrivals(), want)
				c.CheckNoTimersBut("DELAY_DEAD")
			})
		}
	}
}

// TestTimerFiringIsSwept: a firing has no marker and no instance that delivers it, and a client has stored a later
// entry. The sweep finds the firing.
func TestTimerFiringIsSwept(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	harness.BubbleWithBroker(t, harness.TimerConfig(t), func(t *testing.T, c *harness.Client, b *harness.Instance) {
		in := c.Subscribe("orders.>")
		start := time.Now()
		c.Publish("delaytimer.k.orders.x", "old", "Delay-For", "10m")
		time.Sleep(time.Minute)
		b.Stop() // the new broker has read no entry ahead
		c.Purge("DELAY_10m")
		c.Purge("DELAY_1m")
		b.Replace()
		time.Sleep(time.Until(start.Add(10 * time.Minute)))
		c.Fire("delaytimer.k.orders.x", "ghost")
		var again time.Time
		for range 360 { // so that the sweep runs while the broker has a set in memory
			again = time.Now()
			c.Publish("delaytimer.k.orders.x", "new", "Delay-For", "1h")
			time.Sleep(500 * time.Millisecond)
		}
		harness.CheckBodies(t, in.Arrivals(), "old")
		harness.CheckExactly(t, in, again.Add(time.Hour), 1)
		time.Sleep(10 * time.Minute)
		c.CheckNoTimers()
	})
}

// TestFiringKeptUntilSettled: an instance stores a firing and dies. The stream keeps the firing until another instance
// delivers it, even if a client stores a later entry and that timer ends first.
func TestFiringKeptUntilSettled(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	for _, wait := range []time.Duration{3 * time.Second, 10 * time.Minute} {
		for over, header := range map[string][]string{
			"old": {"Delay-Cancel", "1"}, "new old": {"Delay-For", "2s"}, "now old": {"Delay-For", "0s"},
		} {
			for _, history := range []time.Duration{-1, time.Minute} {
				t.Run(fmt.Sprintf("%s, %s, history %s", wait, over, history), func(t *testing.T) {
					t.Parallel()
					cfg := harness.TimerConfig(t)
					cfg.TimerHistory, cfg.Leaser = history, static.Leaser{}
					harness.Bubble(t, cfg, func(t *testing.T, c *harness.Client) {
						in := c.Subscribe("orders.>")
						c.Publish("delaytimer.k.orders.x", "old", "Delay-For", wait.String())
						time.Sleep(wait - time.Second)
						c.Fire("delaytimer.k.orders.x", "ghost")
						fired := time.Now()
						c.Publish("delaytimer.k.orders.x", over[:3], header...)
						time.Sleep(10 * time.Second)
						harness.CheckBodies(t, in.Arrivals(), over)
						arrive := map[string]time.Duration{"old": time.Second, "new": 2 * time.Second, "now": 0} // when due
						for _, a := range in.Arrivals() {
							if after := a.At.Sub(fired); after != arrive[a.Body] {
								t.Errorf("%s arrived %s after the firing, want %s", a.Body, after, arrive[a.Body])
							}
						}
						time.Sleep(10 * time.Minute)
						harness.CheckBodies(t, in.Arrivals(), over)
						c.CheckNoTimers()
					})
				})
			}
		}
	}
}

// TestFiringAfterLostLease: an instance loses the lane while a target has not answered, and acquires it again. A client
// has stored a later entry, so the broker has removed the set of the firing. The firing is delivered again, within
// 100 ms.
func TestFiringAfterLostLease(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		f := harness.NewUncertainLeaser()
		cfg := harness.TimerConfig(t)
		cfg.Leaser = f
		harness.StartBroker(t, s, cfg)
		lease := <-f.Leases
		c := harness.NewClient(t, s)
		in := c.Subscribe("orders.>") // the core subscriber does not acknowledge
		c.Publish("delaytimer.k.orders.x", "old", "Delay-For", "1500ms", "Delay-Deliver", "stream")
		time.Sleep(1600 * time.Millisecond)
		c.Publish("delaytimer.k.orders.x", "new", "Delay-For", "10m")
		time.Sleep(1200 * time.Millisecond)
		harness.CheckBodies(t, in.Arrivals(), "old")
		close(lease.Lost)
		<-lease.Released
		<-f.Leases
		time.Sleep(100 * time.Millisecond)
		harness.CheckBodies(t, in.Arrivals(), "old×2")
	})
}

// TestTimerWithTwoOwners: two instances act at the same time, and both have the due timer in memory. The stream refuses
// the claim of one instance. Both deliver the firing, under one id, so a target's stream stores it once.
func TestTimerWithTwoOwners(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := harness.TimerConfig(t)
		cfg.Leaser = static.Leaser{}
		harness.StartBroker(t, s, cfg)
		c := harness.StartBroker(t, s, cfg).NewClient()
		c.Target("ORDERS", "orders.>")
		start := time.Now()
		waits := []string{"2s", "5s", "1m", "10m"}
		for _, wait := range waits {
			c.Publish("delaytimer.k"+wait+".orders.x", wait, "Delay-For", wait)
		}
		time.Sleep(11 * time.Minute)
		got := c.Arrivals("ORDERS")
		harness.CheckCount(t, got, len(waits))
		for i, a := range got {
			if d, _ := time.ParseDuration(waits[i]); a.Body != waits[i] || !a.At.Equal(start.Add(d)) {
				t.Errorf("%s arrived after %s", a.Body, a.At.Sub(start))
			}
		}
		c.CheckNoTimers()
	})
}

// TestTimerWithoutRoom: the stream of timers is full when a timer is due. The timer is late and not lost. No claim is
// stored, so a client can cancel the timer when the stream has room again.
func TestTimerWithoutRoom(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		c := harness.StartBroker(t, s, harness.TimerConfig(t)).NewClient()
		in := c.Subscribe("orders.>")
		start := time.Now()
		c.Publish("delaytimer.a.orders.x", "a", "Delay-For", "1m")
		g := c.Publish("delaytimer.b.orders.x", "b", "Delay-For", "1m").Sequence
		time.Sleep(30 * time.Second)
		bound(c, "DELAY_TIMERS", 100)
		time.Sleep(time.Minute)
		if got := len(in.Arrivals()); got != 0 {
			t.Errorf("%d arrived although the stream is full", got)
		}
		bound(c, "DELAY_TIMERS", -1)
		if c.PublishIf(g, "delaytimer.b.orders.x", "", "Delay-Cancel", "x") == 0 {
			t.Error("timer b cannot be cancelled")
		}
		time.Sleep(10 * time.Second)
		got := in.Arrivals()
		if len(got) != 1 || got[0].Body != "a" || !got[0].Due.Equal(start.Add(time.Minute)) {
			t.Errorf("%+v arrived, want only a", got)
		}
		c.CheckNoTimers()
	})
}

// bound sets the maximum number of bytes of a stream.
func bound(c *harness.Client, stream string, bytes int64) {
	c.T.Helper()
	c.Reconfigure(stream, func(cfg *jetstream.StreamConfig) { cfg.MaxBytes = bytes })
}
