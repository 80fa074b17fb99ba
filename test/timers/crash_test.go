package timers

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker"
	"delaybroker/broker/lease"
	"delaybroker/broker/message"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// A timer survives a crash at every step of its life.

// forgetCursor removes the cursor of the timers' stream.
func forgetCursor(c *harness.Client) {
	c.T.Helper()
	if m := c.Last("delaysys.armed"); m == nil {
		c.T.Error("there is no cursor")
	} else if err := c.Stream("DELAY_TIMERS").DeleteMsg(context.Background(), m.Sequence); err != nil {
		c.T.Fatal(err)
	}
}

// TestTimerSetWhileNobodyReads: what is set while no broker runs fires when it is due, or at once when one comes later.
func TestTimerSetWhileNobodyReads(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, harness.TimersOn(t)).Stop()
		c := harness.NewClient(t, s)
		in := c.Subscribe("orders.>")
		start := time.Now()
		c.Publish("delaytimer.past.orders.x", "past", "Delay-For", "10m")
		g := c.Publish("delaytimer.cancelled.orders.x", "no", "Delay-For", "2h").Sequence
		c.Publish("delaytimer.future.orders.x", "future", "Delay-For", "2h")
		time.Sleep(time.Hour)
		if c.Expect(g, "delaytimer.cancelled.orders.x", "", "Delay-Cancel", "x") == 0 {
			t.Error("with no broker, it cannot be cancelled")
		}
		harness.StartBroker(t, s, harness.TimersOn(t))
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if got := harness.Bodies(in.All()); got != "past" {
			t.Errorf("when the broker came, there came %q, want past", got)
		}
		harness.CheckExactly(t, in, start.Add(2*time.Hour), 1)
		time.Sleep(time.Minute)
		c.CheckNoTimers()
	})
}

// TestTimerWithTwoMarkers: a crash between a marker and the cursor makes a second marker, which finds nothing to do.
func TestTimerWithTwoMarkers(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		b := harness.StartBroker(t, s, harness.TimersOn(t))
		c := harness.NewClient(t, s)
		in := c.Subscribe("orders.>")
		start := time.Now()
		c.Publish("delaytimer.k.orders.x", "k", "Delay-For", "30m")
		time.Sleep(5 * time.Minute)
		b.Stop()
		forgetCursor(c)
		harness.StartBroker(t, s, harness.TimersOn(t))
		time.Sleep(2 * time.Second)
		if n := harness.Pending(c, "DELAY_10m"); n != 2 {
			t.Errorf("there are %d markers, want 2", n)
		}
		harness.CheckExactly(t, in, start.Add(30*time.Minute), 0)
		time.Sleep(10 * time.Minute)
		if got := len(in.All()); got != 1 {
			t.Errorf("it came %d times", got)
		}
		c.CheckNoTimers()
	})
}

// TestTimerFiredAndNotDelivered: an instance has stored that it fires, and dies. An instance that is alone delivers at
// once; one among several when the lease of the instance has surely ended.
func TestTimerFiredAndNotDelivered(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*broker.Config)
		late   time.Duration
	}{
		"alone":  {func(*broker.Config) {}, 0},
		"shared": {func(c *broker.Config) { c.MaxOwners = 3 }, 2 * time.Second},
		"apart":  {func(c *broker.Config) { c.Leaser = lease.Static{} }, 6 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
				cfg := harness.TimersOn(t)
				tt.change(&cfg)
				b := harness.StartBroker(t, s, cfg)
				c := harness.NewClient(t, s)
				in := c.Subscribe("orders.>")
				start := time.Now()
				g := c.Publish("delaytimer.k.orders.x", "body", "Delay-For", "10m", "X-Mine", "yes").Sequence
				time.Sleep(time.Minute)
				b.Stop()
				time.Sleep(time.Until(start.Add(10 * time.Minute)))
				c.Fire("delaytimer.k.orders.x", "ghost")
				harness.StartBroker(t, s, cfg)
				if tt.late > 0 {
					checkExactlyLate(t, in, start.Add(10*time.Minute), tt.late, 0)
				}
				time.Sleep(time.Second)
				synctest.Wait()
				got := in.All()
				if len(got) != 1 || got[0].Body != "body" || got[0].Header.Get("X-Mine") != "yes" {
					t.Fatalf("there came %+v, want the body with its header, once", got)
				}
				want := message.ID{Stream: "DELAY_TIMERS", Sequence: g, At: start}.String()
				if got[0].ID != want || !got[0].Due.Equal(start.Add(10*time.Minute)) {
					t.Errorf("it came as %s due %s, want %s", got[0].ID, got[0].Due, want)
				}
				time.Sleep(time.Minute)
				c.CheckNoTimers()
			})
		})
	}
}

// checkExactlyLate expects nothing more than came before until so long after due, and one message then.
func checkExactlyLate(t *testing.T, in *harness.Inbox, due time.Time, late time.Duration, before int) {
	t.Helper()
	time.Sleep(time.Until(due.Add(late)) - 1)
	synctest.Wait()
	if got := len(in.All()); got != before {
		t.Fatalf("1ns before it may: %d messages, want %d", got, before)
	}
	time.Sleep(time.Nanosecond)
	synctest.Wait()
	if got := len(in.All()); got != before+1 {
		t.Fatalf("%s after it was due: %d messages, want %d", late, got, before+1)
	}
}

// TestTimerDeliveredAndNotRemoved: the entry of a firing that was delivered cannot be removed before a crash, or only
// its set can. It is delivered once more under the same id, so that a stream stores it once, and removed. That does not
// take longer than a stream recognises copies.
func TestTimerDeliveredAndNotRemoved(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		passes int64 // deletes
		change func(*broker.Config)
	}{
		"nothing removed":           {0, func(*broker.Config) {}},
		"the set removed":           {1, func(*broker.Config) {}},
		"nothing removed, apart":    {0, func(c *broker.Config) { c.Leaser = lease.Static{} }},
		"the set removed and apart": {1, func(c *broker.Config) { c.Leaser = lease.Static{} }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
				var passes atomic.Int64
				passes.Store(1 << 60) // of the cursor, too
				natstest.Proxy(t, s, func(question string, m *nats.Msg) bool {
					return strings.HasPrefix(question, "STREAM.MSG.DELETE.DELAY_TIMERS") && passes.Add(-1) < 0
				})
				cfg := harness.TimersOn(t)
				cfg.APIPrefix = natstest.ProxyAPI
				tt.change(&cfg)
				b := harness.StartBroker(t, s, cfg)
				c := harness.NewClient(t, s)
				c.Target("ORDERS", "orders.>")
				in := c.Subscribe("orders.>")
				c.Publish("delaytimer.k.orders.x", "k", "Delay-For", "900ms") // no level has it
				time.Sleep(899 * time.Millisecond)
				passes.Store(tt.passes)
				time.Sleep(time.Second)
				if got := len(c.Arrivals("ORDERS")); got != 1 {
					t.Fatalf("%d arrived, want 1", got)
				}
				b.Crash()
				passes.Store(1 << 60)
				harness.StartBroker(t, s, cfg)
				time.Sleep(10 * time.Second)
				if sent, stored := len(in.All()), len(c.Arrivals("ORDERS")); sent != 2 || stored != 1 {
					t.Errorf("sent %d times and stored %d times, want 2 and 1", sent, stored)
				}
				c.CheckNoTimers()
			})
		})
	}
}

// TestTimerRemovedAndMarkerNot: a crash between the removal of a firing's entry and the commit of its marker. The
// marker finds nothing, and goes.
func TestTimerRemovedAndMarkerNot(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := harness.TimersOn(t)
		stuck := harness.Mute(t, s, &cfg, "STREAM.PURGE.")
		stuck.Store(true)
		b := harness.StartBroker(t, s, cfg)
		c := harness.NewClient(t, s)
		in := c.Subscribe("orders.>")
		c.Publish("delaytimer.k.orders.x", "k", "Delay-For", "62s")
		time.Sleep(63 * time.Second)
		b.Crash()
		stuck.Store(false)
		if n := harness.Pending(c, "DELAY_1m"); n != 1 {
			t.Fatalf("there are %d markers, want 1", n)
		}
		harness.StartBroker(t, s, cfg)
		time.Sleep(time.Minute)
		if got := len(in.All()); got != 1 {
			t.Errorf("it came %d times", got)
		}
		c.CheckNoTimers()
	})
}

// TestTimerCancelledWhileItsMarkerWaits: no marker brings back what was cancelled, whoever runs when, and whether the
// cancel still stands or is gone. The marker goes as soon as it has been looked at.
func TestTimerCancelledWhileItsMarkerWaits(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		history time.Duration
		restart time.Duration // after the cancel
	}{
		"the cancel stands":                  {3 * time.Hour, time.Hour},
		"it is gone":                         {-1, time.Hour},
		"it stands when the marker is due":   {3 * time.Hour, time.Second},
		"it is gone when the marker is due":  {-1, time.Second},
		"it is stored while the broker runs": {3 * time.Hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
				cfg := harness.TimersOn(t)
				cfg.TimerHistory = tt.history
				b := harness.StartBroker(t, s, cfg)
				c := harness.NewClient(t, s)
				in, fired := c.Subscribe("orders.>"), c.Subscribe("delaytimer.>")
				g := c.Publish("delaytimer.k.orders.x", "no", "Delay-For", "10m").Sequence
				time.Sleep(time.Minute)
				if tt.restart > 0 {
					b.Stop()
				}
				if c.Expect(g, "delaytimer.k.orders.x", "", "Delay-Cancel", "x") == 0 {
					t.Error("it cannot be cancelled")
				}
				if tt.restart > 0 {
					forgetCursor(c)
					time.Sleep(tt.restart)
					harness.StartBroker(t, s, cfg)
				}
				time.Sleep(time.Hour)
				if n := harness.Pending(c, "DELAY_10m") + harness.Pending(c, "DELAY_1m") + harness.Pending(c, "DELAY_10s"); n != 0 {
					t.Errorf("there still are %d markers", n)
				}
				time.Sleep(4 * time.Hour)
				if got := len(in.All()); got != 0 {
					t.Errorf("%d came that were cancelled", got)
				}
				if got := len(fired.All()); got != 2 {
					t.Errorf("%d entries were published, want the set and the cancel", got)
				}
				c.CheckNoTimers()
			})
		})
	}
}

// TestTimerToldAndNotRemoved: what became of a timer is stored, a crash comes before its entries are removed, and a
// client sets it anew. It is not delivered again.
func TestTimerToldAndNotRemoved(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := harness.TimersOn(t)
		cfg.TimerHistory = time.Minute
		stuck := harness.Mute(t, s, &cfg, "STREAM.MSG.DELETE.DELAY_TIMERS")
		b := harness.StartBroker(t, s, cfg)
		c := harness.NewClient(t, s)
		in := c.Subscribe("orders.>")
		c.Publish("delaytimer.k.orders.x", "old", "Delay-For", "900ms")
		time.Sleep(800 * time.Millisecond)
		stuck.Store(true)
		time.Sleep(time.Second)
		b.Crash()
		stuck.Store(false)
		if m := c.Last("delaytimer.k.orders.x"); m == nil || m.Header.Get("Delay-Over") == "" {
			t.Fatalf("the last entry is %+v, want what tells that it was delivered", m)
		}
		again := time.Now()
		c.Publish("delaytimer.k.orders.x", "new", "Delay-For", "10m")
		harness.StartBroker(t, s, cfg)
		time.Sleep(5 * time.Second)
		if n := harness.Pending(c, "DELAY_TIMERS"); n != 2 {
			t.Errorf("there are %d entries, want the new set and the cursor", n)
		}
		harness.CheckExactly(t, in, again.Add(10*time.Minute), 1)
		time.Sleep(5 * time.Minute)
		if got := harness.Bodies(in.All()); got != "new old" {
			t.Errorf("there came %q, want each once", got)
		}
		c.CheckNoTimers()
	})
}

// TestTimerSetOverItsFiring: a client sets a timer anew, or cancels it, and expects nothing, while its firing is on its
// way, and the broker dies before it has delivered. What had fired is delivered once, wherever its marker is, and what
// was set comes when it is due.
func TestTimerSetOverItsFiring(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		wait  string
		lose  func(c *harness.Client, g uint64)
		over  []string // headers of what is put over the firing
		comes bool     // after ten minutes
	}{
		"set, and its marker waits": {"10m", func(*harness.Client, uint64) {}, []string{"Delay-For", "10m"}, true},
		"cancelled, and so":         {"10m", func(*harness.Client, uint64) {}, []string{"Delay-Cancel", "1"}, false},
		"noise, and so":             {"10m", func(*harness.Client, uint64) {}, nil, false},
		"set, and no level has it":  {"1500ms", func(*harness.Client, uint64) {}, []string{"Delay-For", "10m"}, true},
		"cancelled, and so, too":    {"1500ms", func(*harness.Client, uint64) {}, []string{"Delay-Cancel", "1"}, false},
		"its marker is lost": {"10m", func(c *harness.Client, _ uint64) { c.Purge("DELAY_10m"); c.Purge("DELAY_1m") },
			[]string{"Delay-For", "10m"}, true},
		"so is its set": {"10m", func(c *harness.Client, g uint64) {
			c.Purge("DELAY_10m")
			c.Purge("DELAY_1m")
			if err := c.Stream("DELAY_TIMERS").DeleteMsg(context.Background(), g); err != nil {
				c.T.Error(err)
			}
		}, []string{"Delay-Cancel", "1"}, false},
	} {
		for _, history := range []time.Duration{-1, time.Minute} {
			t.Run(fmt.Sprintf("%s, history %s", name, history), func(t *testing.T) {
				t.Parallel()
				natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
					cfg := harness.TimersOn(t)
					cfg.TimerHistory = history
					b := harness.StartBroker(t, s, cfg)
					c := harness.NewClient(t, s)
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
					if got := in.All(); len(got) != 1 || got[0].Body != "old" || got[0].ID != want {
						t.Fatalf("when a broker came, there came %+v, want the old one as %s", got, want)
					}
					if tt.comes {
						harness.CheckExactly(t, in, start.Add(10*time.Minute), 1)
					}
					time.Sleep(time.Hour)
					want = map[bool]string{false: "old", true: "new old"}[tt.comes]
					if got := harness.Bodies(in.All()); got != want {
						t.Errorf("in the end there came %q, want %q", got, want)
					}
					c.CheckNoTimersBut("DELAY_DEAD")
				})
			})
		}
	}
}

// TestTimerFiringIsSwept: the marker is lost, and a client has set the timer anew over a firing
// that nobody delivers. The sweep finds it.
func TestTimerFiringIsSwept(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		b := harness.StartBroker(t, s, harness.TimersOn(t))
		c := harness.NewClient(t, s)
		in := c.Subscribe("orders.>")
		start := time.Now()
		c.Publish("delaytimer.k.orders.x", "old", "Delay-For", "10m")
		time.Sleep(time.Minute)
		b.Stop() // with what it had read ahead
		c.Purge("DELAY_10m")
		c.Purge("DELAY_1m")
		harness.StartBroker(t, s, harness.TimersOn(t))
		time.Sleep(time.Until(start.Add(10 * time.Minute)))
		c.Fire("delaytimer.k.orders.x", "ghost")
		var again time.Time
		for range 360 { // so that one is in memory when the sweep comes
			again = time.Now()
			c.Publish("delaytimer.k.orders.x", "new", "Delay-For", "1h")
			time.Sleep(500 * time.Millisecond)
		}
		if got := harness.Bodies(in.All()); got != "old" {
			t.Errorf("after three minutes there came %q, want what had fired", got)
		}
		harness.CheckExactly(t, in, again.Add(time.Hour), 1)
		time.Sleep(10 * time.Minute)
		c.CheckNoTimers()
	})
}

// TestFiringStaysUntilItIsSettled: while an instance may be at a firing, what clients put over it comes, and goes, and
// leaves the firing where it is.
func TestFiringStaysUntilItIsSettled(t *testing.T) {
	t.Parallel()
	for _, wait := range []time.Duration{3 * time.Second, 10 * time.Minute} {
		for over, header := range map[string][]string{
			"old": {"Delay-Cancel", "1"}, "new old": {"Delay-For", "2s"}, "now old": {"Delay-For", "0s"},
		} {
			for _, history := range []time.Duration{-1, time.Minute} {
				t.Run(fmt.Sprintf("%s, %s, history %s", wait, over, history), func(t *testing.T) {
					t.Parallel()
					natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
						cfg := harness.TimersOn(t)
						cfg.TimerHistory, cfg.Leaser = history, lease.Static{}
						harness.StartBroker(t, s, cfg)
						c := harness.NewClient(t, s)
						in := c.Subscribe("orders.>")
						c.Publish("delaytimer.k.orders.x", "old", "Delay-For", wait.String())
						time.Sleep(wait - time.Second)
						c.Fire("delaytimer.k.orders.x", "ghost")
						fired := time.Now()
						c.Publish("delaytimer.k.orders.x", over[:3], header...)
						checkExactlyLate(t, in, fired, 6*time.Second, strings.Count(over, " "))
						if got := harness.Bodies(in.All()); got != over {
							t.Errorf("there came %q, want %q", got, over)
						}
						time.Sleep(10 * time.Minute)
						if got := harness.Bodies(in.All()); got != over {
							t.Errorf("in the end there came %q, want %q", got, over)
						}
						c.CheckNoTimers()
					})
				})
			}
		}
	}
}

// TestFiringLeftByOurselves: an instance loses the lane while a target has not answered, and takes it over again. A
// client has put something over the firing, so that its set is removed. The firing is delivered at once.
func TestFiringLeftByOurselves(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		f := &harness.Fickle{Of: "DELAY_TIMERS", Lease: make(chan *harness.FickleLease, 10)}
		f.Held.Store(true)
		cfg := harness.TimersOn(t)
		cfg.Leaser = f
		harness.StartBroker(t, s, cfg)
		lease := <-f.Lease
		c := harness.NewClient(t, s)
		in := c.Subscribe("orders.>") // which is no stream, and does not acknowledge
		c.Publish("delaytimer.k.orders.x", "old", "Delay-For", "1500ms", "Delay-Deliver", "stream")
		time.Sleep(1600 * time.Millisecond)
		c.Publish("delaytimer.k.orders.x", "new", "Delay-For", "10m")
		time.Sleep(1200 * time.Millisecond)
		if got := harness.Bodies(in.All()); got != "old" {
			t.Errorf("before the lane is lost, there came %q", got)
		}
		close(lease.Lost)
		<-lease.Left
		<-f.Lease
		time.Sleep(100 * time.Millisecond)
		if got := harness.Bodies(in.All()); got != "old×2" {
			t.Errorf("when it is back, there came %q", got)
		}
	})
}

// TestTimerWithTwoOwners: for a moment two instances own all lanes, and both hold the timer when it is due. It is
// delivered once: one of them is refused, leaves the firing to the other, and finds nothing.
func TestTimerWithTwoOwners(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := harness.TimersOn(t)
		cfg.Leaser = lease.Static{}
		harness.StartBroker(t, s, cfg)
		harness.StartBroker(t, s, cfg)
		c := harness.NewClient(t, s)
		in := c.Subscribe("orders.>")
		for i, wait := range []string{"2s", "5s", "1m", "1h"} {
			start := time.Now()
			c.Publish("delaytimer.k"+wait+".orders.x", wait, "Delay-For", wait)
			d, _ := time.ParseDuration(wait)
			harness.CheckExactly(t, in, start.Add(d), i)
		}
		time.Sleep(time.Minute)
		if got := len(in.All()); got != 4 {
			t.Errorf("%d came, want 4: %s", got, harness.Bodies(in.All()))
		}
		c.CheckNoTimers()
	})
}

// TestTimerWithoutRoom: the stream of timers is full when one is due. It is late and not lost, and it can still be
// cancelled: nothing of it is stored elsewhere first.
func TestTimerWithoutRoom(t *testing.T) {
	t.Parallel()
	natstest.BubbleWith(t, server.Options{}, func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, harness.TimersOn(t))
		c := harness.NewClient(t, s)
		in := c.Subscribe("orders.>")
		start := time.Now()
		c.Publish("delaytimer.a.orders.x", "a", "Delay-For", "1m")
		g := c.Publish("delaytimer.b.orders.x", "b", "Delay-For", "1m").Sequence
		time.Sleep(30 * time.Second)
		bound(c, "DELAY_TIMERS", 100)
		time.Sleep(time.Minute)
		if got := len(in.All()); got != 0 {
			t.Errorf("%d came although nothing can be stored", got)
		}
		bound(c, "DELAY_TIMERS", -1)
		if c.Expect(g, "delaytimer.b.orders.x", "", "Delay-Cancel", "x") == 0 {
			t.Log("b has fired before it could be cancelled")
		}
		time.Sleep(10 * time.Second)
		got := in.All()
		if len(got) == 0 || got[0].Body != "a" || !got[0].Due.Equal(start.Add(time.Minute)) {
			t.Errorf("there came %+v, want a", got)
		}
		c.CheckNoTimers()
	})
}

// bound sets the bytes that a stream may have.
func bound(c *harness.Client, stream string, bytes int64) {
	c.T.Helper()
	c.Reconfigure(stream, func(cfg *jetstream.StreamConfig) { cfg.MaxBytes = bytes })
}
