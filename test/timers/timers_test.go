// Package timers tests named timers end to end. Package timer explains the words: entry, set, generation, firing,
// claim, marker, outcome, cursor, sweep, round, run.
package timers

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"delaybroker/broker/message"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

func TestMain(m *testing.M) { harness.Main(m) }

// TestTimerFires: a timer with a short or long delay fires exactly at its due time, and leaves no entry.
func TestTimerFires(t *testing.T) {
	t.Parallel()
	harness.Bubble(t, harness.TimerConfig(t), func(t *testing.T, c *harness.Client) {
		in := c.Subscribe("orders.>")
		for n, wait := range []time.Duration{0, 1, 999 * time.Millisecond, 2 * time.Second, 3051 * time.Millisecond,
			4 * time.Second, time.Minute, 2 * time.Hour} {
			start := time.Now()
			ack := c.Publish("delaytimer.key.orders.x", fmt.Sprint(n), "Delay-Until",
				start.Add(wait).UTC().Format(time.RFC3339Nano), "X-Mine", "yes")
			if wait > 0 {
				harness.CheckExactly(t, in, start.Add(wait), n)
			}
			synctest.Wait()
			got := in.Arrivals()[n]
			want := message.ID{Stream: "DELAY_TIMERS", Sequence: ack.Sequence, At: start}
			if got.ID != want.String() || got.Body != fmt.Sprint(n) || got.Header.Get("X-Mine") != "yes" {
				t.Errorf("the timer with the delay %s arrived as %q %v, want the id %s", wait, got.Body, got.Header, want)
			}
			for name := range got.Header {
				if name == "Delay-Fired" || name == "Delay-Timer" || name == "Delay-Seal" || name == "Delay-State" {
					t.Errorf("the target gets the header %s", name)
				}
			}
			time.Sleep(time.Second)
			c.CheckNoTimers()
		}
		c.CheckNoDead()
	})
}

// TestTimerIsReplaced: a set replaces the previous one, before and after a marker is stored for the previous one. Each
// timer fires once, with the last body at the last time.
func TestTimerIsReplaced(t *testing.T) {
	t.Parallel()
	harness.Bubble(t, harness.TimerConfig(t), func(t *testing.T, c *harness.Client) {
		in := c.Subscribe("orders.>")
		start := time.Now()
		c.Publish("delaytimer.a.orders.x", "old", "Delay-For", "2s")
		c.Publish("delaytimer.b.orders.x", "old", "Delay-For", "10m")
		g := c.Publish("delaytimer.c.orders.x", "old", "Delay-For", "10m").Sequence
		time.Sleep(500 * time.Millisecond)
		c.Publish("delaytimer.a.orders.x", "a", "Delay-For", "5s")
		time.Sleep(10 * time.Second)
		harness.CheckBodies(t, in.Arrivals(), "a")
		c.Publish("delaytimer.b.orders.x", "b", "Delay-For", "5m")
		if c.PublishIf(g+1000, "delaytimer.c.orders.x", "wrong", "Delay-For", "1s") != 0 {
			t.Error("a set that expects another generation is stored")
		}
		if c.PublishIf(0, "delaytimer.c.orders.x", "wrong", "Delay-For", "1s") != 0 {
			t.Error("a set that expects no entry is stored")
		}
		if c.PublishIf(g, "delaytimer.c.orders.x", "c", "Delay-For", "20m") == 0 {
			t.Error("a set that expects the generation is not stored")
		}
		time.Sleep(time.Until(start.Add(30 * time.Minute)))
		harness.CheckBodies(t, in.Arrivals(), "a b c")
		harness.CheckOnTime(t, in.Arrivals(), 3)
		c.CheckNoTimers()
		c.CheckNoDead()
	})
}

// TestTimerIsCancelled: after the acknowledgement of a cancel that expects the generation, nothing is delivered.
func TestTimerIsCancelled(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	harness.Bubble(t, harness.TimerConfig(t), func(t *testing.T, c *harness.Client) {
		in := c.Subscribe("orders.>")
		for _, when := range []time.Duration{0, 500 * time.Millisecond, time.Minute, 10*time.Minute - 1} {
			g := c.Publish("delaytimer.k.orders.x", "no", "Delay-For", "10m").Sequence
			near := c.Publish("delaytimer.near.orders.x", "no", "Delay-Until",
				time.Now().Add(when+time.Second).UTC().Format(time.RFC3339Nano))
			time.Sleep(when)
			if c.PublishIf(g, "delaytimer.k.orders.x", "", "Delay-Cancel", "1") == 0 {
				t.Errorf("after %s, the cancel of the timer failed", when)
			}
			if c.PublishIf(near.Sequence, "delaytimer.near.orders.x", "", "Delay-Cancel", "1") == 0 {
				t.Errorf("after %s, the cancel of the timer with the short delay failed", when)
			}
			time.Sleep(15 * time.Minute)
		}
		if got := in.Arrivals(); len(got) != 0 {
			t.Errorf("%d cancelled timers arrived", len(got))
		}
		c.CheckNoTimers()
		c.CheckNoDead()
		g := c.Publish("delaytimer.k.orders.x", "yes", "Delay-For", "1s").Sequence
		time.Sleep(2 * time.Second)
		if c.PublishIf(g, "delaytimer.k.orders.x", "", "Delay-Cancel", "1") != 0 || harness.Bodies(in.Arrivals()) != "yes" {
			t.Errorf("a cancel succeeded after the firing, or the timer did not fire: %q arrived", harness.Bodies(in.Arrivals()))
		}
	})
}

// TestTimerHistory: for DELAY_TIMER_HISTORY after the end of a timer, the last entry of its subject is the outcome or
// the cancel. During this time, the stream refuses a set that expects no entry.
func TestTimerHistory(t *testing.T) {
	t.Parallel()
	cfg := harness.TimerConfig(t)
	cfg.TimerHistory = 10 * time.Minute
	harness.Bubble(t, cfg, func(t *testing.T, c *harness.Client) {
		c.Target("ORDERS", "orders.>")
		for _, tt := range []struct {
			key, want string
			headers   []string
			cancel    bool
		}{
			{key: "delivered", headers: []string{"Delay-For", "1s"}, want: "delivered"},
			{key: "far", headers: []string{"Delay-For", "20m"}, want: "delivered"},
			{key: "cancelled", headers: []string{"Delay-For", "20m"}, cancel: true},
		} {
			subject := "delaytimer." + tt.key + ".orders.x"
			g := c.Publish(subject, tt.key, tt.headers...).Sequence
			over := g
			if tt.cancel {
				over = c.PublishIf(g, subject, "", "Delay-Cancel", "mine")
			}
			time.Sleep(20*time.Minute + time.Second)
			if tt.key == "delivered" || tt.cancel {
				g = c.Publish(subject, tt.key, tt.headers...).Sequence // the last entry of the first timer is removed
				if over = g; tt.cancel {
					over = c.PublishIf(g, subject, "", "Delay-Cancel", "mine")
				}
				time.Sleep(2 * time.Second)
			}
			m := c.LastEntry(subject)
			if m == nil {
				t.Errorf("%s: there is no last entry", tt.key)
				continue
			}
			got, want := m.Header.Get("Delay-Over"), fmt.Sprint(g, " ", tt.want)
			if tt.cancel {
				got, want = m.Header.Get("Delay-Cancel"), "mine"
			}
			if got != want || len(m.Data) > 0 || m.Sequence < over {
				t.Errorf("%s: the last entry has %q and a body of %d bytes, want %q", tt.key, got, len(m.Data), want)
			}
			if c.PublishIf(0, subject, "", "Delay-For", "1s") != 0 {
				t.Errorf("%s: a set that expects no entry is stored", tt.key)
			}
		}
		time.Sleep(11 * time.Minute)
		c.CheckNoTimers()
		c.CheckNoDead()
	})
}

// TestTimerBodiesAreBounded: if many large timers are due at the same time, the broker does not hold all bodies in
// memory.
func TestTimerBodiesAreBounded(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	cfg := harness.TimerConfig(t)
	cfg.HoldBytes = 8 << 20
	harness.BubbleWithBroker(t, cfg, func(t *testing.T, c *harness.Client, b *harness.Instance) {
		in := c.Subscribe("orders.>")
		start := time.Now()
		const many, size = 40, 256 << 10 // 10 MB
		for i := range many {
			c.Publish(fmt.Sprintf("delaytimer.%d.orders.x", i), strings.Repeat("x", size), "Delay-Until",
				start.Add(2*time.Minute).UTC().Format(time.RFC3339))
		}
		time.Sleep(time.Until(start.Add(2 * time.Minute)))
		most := 0
		for range 200 {
			for _, l := range b.Broker.Status().Lanes {
				most = max(most, l.HeldBytes)
			}
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Minute)
		harness.CheckCount(t, in.Arrivals(), many)
		if most > 4<<20 || most < size {
			t.Errorf("a lane had at most %d bytes in memory, want %d to %d", most, size, 4<<20)
		}
		c.CheckNoTimers()
	})
}
