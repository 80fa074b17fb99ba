package test

import (
	"context"
	"fmt"
	"slices"
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
	"delaybroker/broker/timer/entry"
	"delaybroker/test/natstest"
)

// A timer survives a crash at every step of its life.

// fire stores that an instance has fired the timer that is the last entry of a subject, as that instance would before
// it delivers.
func (c *client) fire(subject, instance string) {
	c.t.Helper()
	c.decide(subject, func(r entry.Pending, generation uint64) message.Header {
		return r.FiredHeader(generation, instance)
	})
}

// decide stores, in place of the last entry of a timer's subject, what an instance makes of it.
func (c *client) decide(subject string, header func(r entry.Pending, generation uint64) message.Header) {
	c.t.Helper()
	policy, m := c.policy("delay"), c.last(subject)
	for _, name := range []string{"Nats-Stream", "Nats-Sequence", "Nats-Time-Stamp", "Nats-Subject"} { // of the answer
		delete(m.Header, name)
	}
	e := entry.Parse(policy, message.Incoming{
		Stream: "DELAY_TIMERS", Sequence: m.Sequence, At: m.Time, Subject: subject, Header: message.Header(m.Header),
		Data: m.Data,
	})
	h := header(e.Pending, m.Sequence)
	policy.Keys.SealMessage(subject, h, m.Data, time.Now())
	c.store(&nats.Msg{Subject: subject, Header: nats.Header(h), Data: m.Data})
}

// asWritten are the headers of an entry without those that the server acts on, or adds to an answer.
func asWritten(h nats.Header) nats.Header {
	written := make(nats.Header, len(h))
	for name, values := range h {
		if !strings.HasPrefix(name, "Nats-") {
			written[name] = slices.Clone(values)
		}
	}
	return written
}

// forgetCursor removes the cursor of the timers' stream.
func (c *client) forgetCursor() {
	c.t.Helper()
	if m := c.last("delaysys.armed"); m == nil {
		c.t.Error("there is no cursor")
	} else if err := c.stream("DELAY_TIMERS").DeleteMsg(context.Background(), m.Sequence); err != nil {
		c.t.Fatal(err)
	}
}

// TestTimerSetWhileNobodyReads: what is set while no broker runs fires when it is due, or at once when one comes later.
func TestTimerSetWhileNobodyReads(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		startBroker(t, s, timersOn(t)).stop()
		c := newClient(t, s)
		in := c.subscribe("orders.>")
		start := time.Now()
		c.publish("delaytimer.past.orders.x", "past", "Delay-For", "10m")
		g := c.publish("delaytimer.cancelled.orders.x", "no", "Delay-For", "2h").Sequence
		c.publish("delaytimer.future.orders.x", "future", "Delay-For", "2h")
		time.Sleep(time.Hour)
		if c.expect(g, "delaytimer.cancelled.orders.x", "", "Delay-Cancel", "x") == 0 {
			t.Error("with no broker, it cannot be cancelled")
		}
		startBroker(t, s, timersOn(t))
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if got := bodies(in.all()); got != "past" {
			t.Errorf("when the broker came, there came %q, want past", got)
		}
		checkExactly(t, in, start.Add(2*time.Hour), 1)
		time.Sleep(time.Minute)
		c.checkNoTimers()
	})
}

// TestTimerWithTwoMarkers: a crash between a marker and the cursor makes a second marker, which finds nothing to do.
func TestTimerWithTwoMarkers(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		b := startBroker(t, s, timersOn(t))
		c := newClient(t, s)
		in := c.subscribe("orders.>")
		start := time.Now()
		c.publish("delaytimer.k.orders.x", "k", "Delay-For", "30m")
		time.Sleep(5 * time.Minute)
		b.stop()
		c.forgetCursor()
		startBroker(t, s, timersOn(t))
		time.Sleep(2 * time.Second)
		if n := pending(c, "DELAY_10m"); n != 2 {
			t.Errorf("there are %d markers, want 2", n)
		}
		checkExactly(t, in, start.Add(30*time.Minute), 0)
		time.Sleep(10 * time.Minute)
		if got := len(in.all()); got != 1 {
			t.Errorf("it came %d times", got)
		}
		c.checkNoTimers()
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
				cfg := timersOn(t)
				tt.change(&cfg)
				b := startBroker(t, s, cfg)
				c := newClient(t, s)
				in := c.subscribe("orders.>")
				start := time.Now()
				g := c.publish("delaytimer.k.orders.x", "body", "Delay-For", "10m", "X-Mine", "yes").Sequence
				time.Sleep(time.Minute)
				b.stop()
				time.Sleep(time.Until(start.Add(10 * time.Minute)))
				c.fire("delaytimer.k.orders.x", "ghost")
				startBroker(t, s, cfg)
				if tt.late > 0 {
					checkExactlyLate(t, in, start.Add(10*time.Minute), tt.late, 0)
				}
				time.Sleep(time.Second)
				synctest.Wait()
				got := in.all()
				if len(got) != 1 || got[0].Body != "body" || got[0].Header.Get("X-Mine") != "yes" {
					t.Fatalf("there came %+v, want the body with its header, once", got)
				}
				want := message.ID{Stream: "DELAY_TIMERS", Sequence: g, At: start}.String()
				if got[0].ID != want || !got[0].Due.Equal(start.Add(10*time.Minute)) {
					t.Errorf("it came as %s due %s, want %s", got[0].ID, got[0].Due, want)
				}
				time.Sleep(time.Minute)
				c.checkNoTimers()
			})
		})
	}
}

// checkExactlyLate expects nothing more than came before until so long after due, and one message then.
func checkExactlyLate(t *testing.T, in *inbox, due time.Time, late time.Duration, before int) {
	t.Helper()
	time.Sleep(time.Until(due.Add(late)) - 1)
	synctest.Wait()
	if got := len(in.all()); got != before {
		t.Fatalf("1ns before it may: %d messages, want %d", got, before)
	}
	time.Sleep(time.Nanosecond)
	synctest.Wait()
	if got := len(in.all()); got != before+1 {
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
				cfg := timersOn(t)
				cfg.APIPrefix = natstest.ProxyAPI
				tt.change(&cfg)
				b := startBroker(t, s, cfg)
				c := newClient(t, s)
				c.target("ORDERS", "orders.>")
				in := c.subscribe("orders.>")
				c.publish("delaytimer.k.orders.x", "k", "Delay-For", "900ms") // no level has it
				time.Sleep(899 * time.Millisecond)
				passes.Store(tt.passes)
				time.Sleep(time.Second)
				if got := len(c.arrivals("ORDERS")); got != 1 {
					t.Fatalf("%d arrived, want 1", got)
				}
				b.crash()
				passes.Store(1 << 60)
				startBroker(t, s, cfg)
				time.Sleep(10 * time.Second)
				if sent, stored := len(in.all()), len(c.arrivals("ORDERS")); sent != 2 || stored != 1 {
					t.Errorf("sent %d times and stored %d times, want 2 and 1", sent, stored)
				}
				c.checkNoTimers()
			})
		})
	}
}

// TestTimerRemovedAndMarkerNot: a crash between the removal of a firing's entry and the commit of its marker. The
// marker finds nothing, and goes.
func TestTimerRemovedAndMarkerNot(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := timersOn(t)
		stuck := mute(t, s, &cfg, "STREAM.PURGE.")
		stuck.Store(true)
		b := startBroker(t, s, cfg)
		c := newClient(t, s)
		in := c.subscribe("orders.>")
		c.publish("delaytimer.k.orders.x", "k", "Delay-For", "62s")
		time.Sleep(63 * time.Second)
		b.crash()
		stuck.Store(false)
		if n := pending(c, "DELAY_1m"); n != 1 {
			t.Fatalf("there are %d markers, want 1", n)
		}
		startBroker(t, s, cfg)
		time.Sleep(time.Minute)
		if got := len(in.all()); got != 1 {
			t.Errorf("it came %d times", got)
		}
		c.checkNoTimers()
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
				cfg := timersOn(t)
				cfg.TimerHistory = tt.history
				b := startBroker(t, s, cfg)
				c := newClient(t, s)
				in, fired := c.subscribe("orders.>"), c.subscribe("delaytimer.>")
				g := c.publish("delaytimer.k.orders.x", "no", "Delay-For", "10m").Sequence
				time.Sleep(time.Minute)
				if tt.restart > 0 {
					b.stop()
				}
				if c.expect(g, "delaytimer.k.orders.x", "", "Delay-Cancel", "x") == 0 {
					t.Error("it cannot be cancelled")
				}
				if tt.restart > 0 {
					c.forgetCursor()
					time.Sleep(tt.restart)
					startBroker(t, s, cfg)
				}
				time.Sleep(time.Hour)
				if n := pending(c, "DELAY_10m") + pending(c, "DELAY_1m") + pending(c, "DELAY_10s"); n != 0 {
					t.Errorf("there still are %d markers", n)
				}
				time.Sleep(4 * time.Hour)
				if got := len(in.all()); got != 0 {
					t.Errorf("%d came that were cancelled", got)
				}
				if got := len(fired.all()); got != 2 {
					t.Errorf("%d entries were published, want the set and the cancel", got)
				}
				c.checkNoTimers()
			})
		})
	}
}

// TestTimerToldAndNotRemoved: what became of a timer is stored, a crash comes before its entries are removed, and a
// client sets it anew. It is not delivered again.
func TestTimerToldAndNotRemoved(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := timersOn(t)
		cfg.TimerHistory = time.Minute
		stuck := mute(t, s, &cfg, "STREAM.MSG.DELETE.DELAY_TIMERS")
		b := startBroker(t, s, cfg)
		c := newClient(t, s)
		in := c.subscribe("orders.>")
		c.publish("delaytimer.k.orders.x", "old", "Delay-For", "900ms")
		time.Sleep(800 * time.Millisecond)
		stuck.Store(true)
		time.Sleep(time.Second)
		b.crash()
		stuck.Store(false)
		if m := c.last("delaytimer.k.orders.x"); m == nil || m.Header.Get("Delay-Over") == "" {
			t.Fatalf("the last entry is %+v, want what tells that it was delivered", m)
		}
		again := time.Now()
		c.publish("delaytimer.k.orders.x", "new", "Delay-For", "10m")
		startBroker(t, s, cfg)
		time.Sleep(5 * time.Second)
		if n := pending(c, "DELAY_TIMERS"); n != 2 {
			t.Errorf("there are %d entries, want the new set and the cursor", n)
		}
		checkExactly(t, in, again.Add(10*time.Minute), 1)
		time.Sleep(5 * time.Minute)
		if got := bodies(in.all()); got != "new old" {
			t.Errorf("there came %q, want each once", got)
		}
		c.checkNoTimers()
	})
}

// TestTimerSetOverItsFiring: a client sets a timer anew, or cancels it, and expects nothing, while its firing is on its
// way, and the broker dies before it has delivered. What had fired is delivered once, wherever its marker is, and what
// was set comes when it is due.
func TestTimerSetOverItsFiring(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		wait  string
		lose  func(c *client, g uint64)
		over  []string // headers of what is put over the firing
		comes bool     // after ten minutes
	}{
		"set, and its marker waits": {"10m", func(*client, uint64) {}, []string{"Delay-For", "10m"}, true},
		"cancelled, and so":         {"10m", func(*client, uint64) {}, []string{"Delay-Cancel", "1"}, false},
		"noise, and so":             {"10m", func(*client, uint64) {}, nil, false},
		"set, and no level has it":  {"1500ms", func(*client, uint64) {}, []string{"Delay-For", "10m"}, true},
		"cancelled, and so, too":    {"1500ms", func(*client, uint64) {}, []string{"Delay-Cancel", "1"}, false},
		"its marker is lost": {"10m", func(c *client, _ uint64) { c.purge("DELAY_10m"); c.purge("DELAY_1m") },
			[]string{"Delay-For", "10m"}, true},
		"so is its set": {"10m", func(c *client, g uint64) {
			c.purge("DELAY_10m")
			c.purge("DELAY_1m")
			if err := c.stream("DELAY_TIMERS").DeleteMsg(context.Background(), g); err != nil {
				c.t.Error(err)
			}
		}, []string{"Delay-Cancel", "1"}, false},
	} {
		for _, history := range []time.Duration{-1, time.Minute} {
			t.Run(fmt.Sprintf("%s, history %s", name, history), func(t *testing.T) {
				t.Parallel()
				natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
					cfg := timersOn(t)
					cfg.TimerHistory = history
					b := startBroker(t, s, cfg)
					c := newClient(t, s)
					in := c.subscribe("orders.>")
					set := time.Now()
					g := c.publish("delaytimer.k.orders.x", "old", "Delay-For", tt.wait).Sequence
					wait, _ := time.ParseDuration(tt.wait)
					time.Sleep(min(wait/2, time.Minute))
					b.stop()
					time.Sleep(10 * time.Minute)
					c.fire("delaytimer.k.orders.x", "ghost")
					tt.lose(c, g)
					start := time.Now()
					c.publish("delaytimer.k.orders.x", "new", tt.over...)
					time.Sleep(time.Millisecond)
					startBroker(t, s, cfg)
					time.Sleep(time.Second)
					want := message.ID{Stream: "DELAY_TIMERS", Sequence: g, At: set}.String()
					if got := in.all(); len(got) != 1 || got[0].Body != "old" || got[0].ID != want {
						t.Fatalf("when a broker came, there came %+v, want the old one as %s", got, want)
					}
					if tt.comes {
						checkExactly(t, in, start.Add(10*time.Minute), 1)
					}
					time.Sleep(time.Hour)
					want = map[bool]string{false: "old", true: "new old"}[tt.comes]
					if got := bodies(in.all()); got != want {
						t.Errorf("in the end there came %q, want %q", got, want)
					}
					c.checkNoTimersBut("DELAY_DEAD")
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
		b := startBroker(t, s, timersOn(t))
		c := newClient(t, s)
		in := c.subscribe("orders.>")
		start := time.Now()
		c.publish("delaytimer.k.orders.x", "old", "Delay-For", "10m")
		time.Sleep(time.Minute)
		b.stop() // with what it had read ahead
		c.purge("DELAY_10m")
		c.purge("DELAY_1m")
		startBroker(t, s, timersOn(t))
		time.Sleep(time.Until(start.Add(10 * time.Minute)))
		c.fire("delaytimer.k.orders.x", "ghost")
		var again time.Time
		for range 360 { // so that one is in memory when the sweep comes
			again = time.Now()
			c.publish("delaytimer.k.orders.x", "new", "Delay-For", "1h")
			time.Sleep(500 * time.Millisecond)
		}
		if got := bodies(in.all()); got != "old" {
			t.Errorf("after three minutes there came %q, want what had fired", got)
		}
		checkExactly(t, in, again.Add(time.Hour), 1)
		time.Sleep(10 * time.Minute)
		c.checkNoTimers()
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
						cfg := timersOn(t)
						cfg.TimerHistory, cfg.Leaser = history, lease.Static{}
						startBroker(t, s, cfg)
						c := newClient(t, s)
						in := c.subscribe("orders.>")
						c.publish("delaytimer.k.orders.x", "old", "Delay-For", wait.String())
						time.Sleep(wait - time.Second)
						c.fire("delaytimer.k.orders.x", "ghost")
						fired := time.Now()
						c.publish("delaytimer.k.orders.x", over[:3], header...)
						checkExactlyLate(t, in, fired, 6*time.Second, strings.Count(over, " "))
						if got := bodies(in.all()); got != over {
							t.Errorf("there came %q, want %q", got, over)
						}
						time.Sleep(10 * time.Minute)
						if got := bodies(in.all()); got != over {
							t.Errorf("in the end there came %q, want %q", got, over)
						}
						c.checkNoTimers()
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
		f := &fickle{of: "DELAY_TIMERS", lease: make(chan *fickleLease, 10)}
		f.held.Store(true)
		cfg := timersOn(t)
		cfg.Leaser = f
		startBroker(t, s, cfg)
		lease := <-f.lease
		c := newClient(t, s)
		in := c.subscribe("orders.>") // which is no stream, and does not acknowledge
		c.publish("delaytimer.k.orders.x", "old", "Delay-For", "1500ms", "Delay-Deliver", "stream")
		time.Sleep(1600 * time.Millisecond)
		c.publish("delaytimer.k.orders.x", "new", "Delay-For", "10m")
		time.Sleep(1200 * time.Millisecond)
		if got := bodies(in.all()); got != "old" {
			t.Errorf("before the lane is lost, there came %q", got)
		}
		close(lease.lost)
		<-lease.left
		<-f.lease
		time.Sleep(100 * time.Millisecond)
		if got := bodies(in.all()); got != "old×2" {
			t.Errorf("when it is back, there came %q", got)
		}
	})
}

// TestTimerWithTwoOwners: for a moment two instances own all lanes, and both hold the timer when it is due. It is
// delivered once: one of them is refused, leaves the firing to the other, and finds nothing.
func TestTimerWithTwoOwners(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := timersOn(t)
		cfg.Leaser = lease.Static{}
		startBroker(t, s, cfg)
		startBroker(t, s, cfg)
		c := newClient(t, s)
		in := c.subscribe("orders.>")
		for i, wait := range []string{"2s", "5s", "1m", "1h"} {
			start := time.Now()
			c.publish("delaytimer.k"+wait+".orders.x", wait, "Delay-For", wait)
			d, _ := time.ParseDuration(wait)
			checkExactly(t, in, start.Add(d), i)
		}
		time.Sleep(time.Minute)
		if got := len(in.all()); got != 4 {
			t.Errorf("%d came, want 4: %s", got, bodies(in.all()))
		}
		c.checkNoTimers()
	})
}

// TestTimerWithoutRoom: the stream of timers is full when one is due. It is late and not lost, and it can still be
// cancelled: nothing of it is stored elsewhere first.
func TestTimerWithoutRoom(t *testing.T) {
	t.Parallel()
	natstest.BubbleWith(t, server.Options{}, func(t *testing.T, s *natstest.Server) {
		startBroker(t, s, timersOn(t))
		c := newClient(t, s)
		in := c.subscribe("orders.>")
		start := time.Now()
		c.publish("delaytimer.a.orders.x", "a", "Delay-For", "1m")
		g := c.publish("delaytimer.b.orders.x", "b", "Delay-For", "1m").Sequence
		time.Sleep(30 * time.Second)
		c.bound("DELAY_TIMERS", 100)
		time.Sleep(time.Minute)
		if got := len(in.all()); got != 0 {
			t.Errorf("%d came although nothing can be stored", got)
		}
		c.bound("DELAY_TIMERS", -1)
		if c.expect(g, "delaytimer.b.orders.x", "", "Delay-Cancel", "x") == 0 {
			t.Log("b has fired before it could be cancelled")
		}
		time.Sleep(10 * time.Second)
		got := in.all()
		if len(got) == 0 || got[0].Body != "a" || !got[0].Due.Equal(start.Add(time.Minute)) {
			t.Errorf("there came %+v, want a", got)
		}
		c.checkNoTimers()
	})
}

// bound sets the bytes that a stream may have.
func (c *client) bound(stream string, bytes int64) {
	c.t.Helper()
	c.reconfigure(stream, func(cfg *jetstream.StreamConfig) { cfg.MaxBytes = bytes })
}
