package test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker"
	"delaybroker/broker/message"
	"delaybroker/test/natstest"
)

// timersOn is the configuration of a broker with named timers, of which nothing is told once they are over.
func timersOn(t testing.TB) broker.Config {
	return broker.Config{Ladder: ladder(t, "1s 5s 10s 1m 10m 1h"), Timers: true, TimerHistory: -1}
}

// expect publishes on a timer's subject, expecting a generation. It returns the new entry's sequence, or zero if that
// generation is no longer the last entry.
func (c *client) expect(generation uint64, subject, body string, headers ...string) uint64 {
	c.t.Helper()
	m := newMsg(subject, body, headers...)
	m.Header.Set("Nats-Expected-Last-Subject-Sequence", strconv.FormatUint(generation, 10))
	return c.ask(m)
}

// ask publishes a message that may expect something. It returns its sequence, or zero if what it expects is not so.
func (c *client) ask(m *nats.Msg) uint64 {
	c.t.Helper()
	ack, err := c.js.PublishMsg(context.Background(), m, jetstream.WithRetryAttempts(0))
	if api := (*jetstream.APIError)(nil); errors.As(err, &api) && api.ErrorCode == 10071 {
		return 0
	}
	if err != nil {
		c.t.Errorf("publish on %s: %v", m.Subject, err)
		return 0
	}
	return ack.Sequence
}

// last is the last entry of a timer's subject, nil if there is none.
func (c *client) last(subject string) *jetstream.RawStreamMsg {
	c.t.Helper()
	m, err := c.stream("DELAY_TIMERS").GetLastMsgForSubject(context.Background(), subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return m
}

// checkNoTimers expects the timers' stream to hold its cursor and nothing else.
func (c *client) checkNoTimers() {
	c.t.Helper()
	c.checkNoTimersBut("")
}

func (c *client) checkNoTimersBut(stream string) {
	c.t.Helper()
	for _, a := range c.arrivals("DELAY_TIMERS") {
		if a.Subject != "delaysys.armed" {
			c.t.Errorf("on %s there still is %q %v", a.Subject, a.Body, a.Header)
		}
	}
	for info := range c.js.ListStreams(context.Background()).Info() {
		name := info.Config.Name
		if name == pausedStream {
			info.State.Msgs -= min(info.State.Msgs, 1) // the list of pauses
		}
		if strings.HasPrefix(name, "DELAY_") && name != "DELAY_TIMERS" && name != "DELAY_OWNERS" && name != stream &&
			info.State.Msgs > 0 {
			c.t.Errorf("%s still holds %d messages", name, info.State.Msgs)
		}
	}
}

// TestTimerFires: a timer fires exactly when it is due, near or far, and leaves nothing.
func TestTimerFires(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		startBroker(t, s, timersOn(t))
		c := newClient(t, s)
		in := c.subscribe("orders.>")
		for n, wait := range []time.Duration{0, 1, 999 * time.Millisecond, 2 * time.Second, 3051 * time.Millisecond,
			4 * time.Second, time.Minute, 2 * time.Hour} {
			start := time.Now()
			ack := c.publish("delaytimer.key.orders.x", fmt.Sprint(n), "Delay-Until",
				start.Add(wait).UTC().Format(time.RFC3339Nano), "X-Mine", "yes")
			if wait > 0 {
				checkExactly(t, in, start.Add(wait), n)
			}
			synctest.Wait()
			got := in.all()[n]
			want := message.ID{Stream: "DELAY_TIMERS", Sequence: ack.Sequence, At: start}
			if got.ID != want.String() || got.Body != fmt.Sprint(n) || got.Header.Get("X-Mine") != "yes" {
				t.Errorf("after %s came %q %v, want %s", wait, got.Body, got.Header, want)
			}
			for name := range got.Header {
				if name == "Delay-Fired" || name == "Delay-Timer" || name == "Delay-Seal" || name == "Delay-Format" {
					t.Errorf("at the target there is the header %s", name)
				}
			}
			time.Sleep(time.Second)
			c.checkNoTimers()
		}
		c.checkNoDead()
	})
}

// TestTimerIsReplaced: a set takes the place of the one before, in memory, in a level, and at the last moment. Each
// timer fires once, with the last body at the last time.
func TestTimerIsReplaced(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		startBroker(t, s, timersOn(t))
		c := newClient(t, s)
		in := c.subscribe("orders.>")
		start := time.Now()
		c.publish("delaytimer.a.orders.x", "old", "Delay-For", "2s")
		c.publish("delaytimer.b.orders.x", "old", "Delay-For", "10m")
		g := c.publish("delaytimer.c.orders.x", "old", "Delay-For", "10m").Sequence
		time.Sleep(500 * time.Millisecond)
		c.publish("delaytimer.a.orders.x", "a", "Delay-For", "5s")
		time.Sleep(10 * time.Second)
		if got := bodies(in.all()); got != "a" {
			t.Errorf("after 10s there came %q, want a alone", got)
		}
		c.publish("delaytimer.b.orders.x", "b", "Delay-For", "5m")
		if c.expect(g+1000, "delaytimer.c.orders.x", "wrong", "Delay-For", "1s") != 0 {
			t.Error("a set that expects another generation is stored")
		}
		if c.expect(0, "delaytimer.c.orders.x", "wrong", "Delay-For", "1s") != 0 {
			t.Error("a set that expects none is stored")
		}
		if c.expect(g, "delaytimer.c.orders.x", "c", "Delay-For", "20m") == 0 {
			t.Error("a set that expects the generation is not stored")
		}
		time.Sleep(time.Until(start.Add(time.Hour)))
		if got := bodies(in.all()); got != "a b c" {
			t.Errorf("after an hour there came %q, want a b c", got)
		}
		for _, a := range in.all() {
			if !a.At.Equal(a.Due) {
				t.Errorf("%s was due %s and came %s", a.Body, a.Due, a.At)
			}
		}
		c.checkNoTimers()
		c.checkNoDead()
	})
}

// TestTimerIsCancelled: after the acknowledgement of a cancel that expects the generation, nothing is delivered.
func TestTimerIsCancelled(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		startBroker(t, s, timersOn(t))
		c := newClient(t, s)
		in := c.subscribe("orders.>")
		for _, when := range []time.Duration{0, 500 * time.Millisecond, time.Minute, 10*time.Minute - 1} {
			g := c.publish("delaytimer.k.orders.x", "no", "Delay-For", "10m").Sequence
			near := c.publish("delaytimer.near.orders.x", "no", "Delay-Until",
				time.Now().Add(when+time.Second).UTC().Format(time.RFC3339Nano))
			time.Sleep(when)
			if c.expect(g, "delaytimer.k.orders.x", "", "Delay-Cancel", "1") == 0 {
				t.Errorf("after %s it cannot be cancelled", when)
			}
			if c.expect(near.Sequence, "delaytimer.near.orders.x", "", "Delay-Cancel", "1") == 0 {
				t.Errorf("after %s the near one cannot be cancelled", when)
			}
			time.Sleep(time.Hour)
		}
		if got := in.all(); len(got) != 0 {
			t.Errorf("%d came that were cancelled", len(got))
		}
		c.checkNoTimers()
		c.checkNoDead()
		g := c.publish("delaytimer.k.orders.x", "yes", "Delay-For", "1s").Sequence
		time.Sleep(2 * time.Second)
		if c.expect(g, "delaytimer.k.orders.x", "", "Delay-Cancel", "1") != 0 || bodies(in.all()) != "yes" {
			t.Errorf("it is cancelled after it has fired; there came %q", bodies(in.all()))
		}
	})
}

// TestTimerHistory: for a while, the last entry of a timer's subject tells what became of it, and "only if there is
// none" holds beyond the firing.
func TestTimerHistory(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := timersOn(t)
		cfg.TimerHistory = 10 * time.Minute
		startBroker(t, s, cfg)
		c := newClient(t, s)
		c.target("ORDERS", "orders.>")
		for _, tt := range []struct {
			key, want string
			headers   []string
			cancel    bool
		}{
			{key: "delivered", headers: []string{"Delay-For", "1s"}, want: "delivered"},
			{key: "far", headers: []string{"Delay-For", "1h"}, want: "delivered"},
			{key: "cancelled", headers: []string{"Delay-For", "1h"}, cancel: true},
		} {
			subject := "delaytimer." + tt.key + ".orders.x"
			g := c.publish(subject, tt.key, tt.headers...).Sequence
			over := g
			if tt.cancel {
				over = c.expect(g, subject, "", "Delay-Cancel", "mine")
			}
			time.Sleep(time.Hour + time.Second)
			if tt.key == "delivered" || tt.cancel {
				g = c.publish(subject, tt.key, tt.headers...).Sequence // the first is forgotten by now
				if over = g; tt.cancel {
					over = c.expect(g, subject, "", "Delay-Cancel", "mine")
				}
				time.Sleep(2 * time.Second)
			}
			m := c.last(subject)
			if m == nil {
				t.Errorf("%s: there is no last entry", tt.key)
				continue
			}
			got, want := m.Header.Get("Delay-Over"), fmt.Sprint(g, " ", tt.want)
			if tt.cancel {
				got, want = m.Header.Get("Delay-Cancel"), "mine"
			}
			if got != want || len(m.Data) > 0 || m.Sequence < over {
				t.Errorf("%s: it says %q with a body of %d, want %q", tt.key, got, len(m.Data), want)
			}
			if c.expect(0, subject, "", "Delay-For", "1s") != 0 {
				t.Errorf("%s: it can be set as if there had been none", tt.key)
			}
		}
		time.Sleep(11 * time.Minute)
		c.checkNoTimers()
		c.checkNoDead()
	})
}
