package test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"delaybroker/broker/timer"
	"delaybroker/broker/timer/timetable"
	"delaybroker/test/natstest"
)

// controlsSeries is a client that knows the secrets, and may write rounds.
func controlsSeries(c *client) *controlled {
	all := controls(c)
	all.timers.Policy = c.policy("delay")
	return all
}

// everyHour is a broker with a series that has just been set.
func everyHour(t *testing.T, s *natstest.Server, headers ...string) (
	c *controlled, in *inbox, start time.Time, generation uint64,
) {
	t.Helper()
	startBroker(t, s, timersOn(t))
	c = controlsSeries(newClient(t, s))
	in = c.subscribe("orders.>")
	start = time.Now()
	headers = append([]string{"Delay-Every", "1h"}, headers...)
	return c, in, start, c.publish("delaytimer.k.orders.x", "body", headers...).Sequence
}

// TestSeriesIsMoved: a move moves one round. The next is due by the table, and so are those that follow.
func TestSeriesIsMoved(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		c, in, start, g := everyHour(t, s, "X-Mine", "yes")
		time.Sleep(90 * time.Minute)
		second := c.last("delaytimer.k.orders.x").Sequence
		w := wish(timer.Move, "k", second)
		w.For = "10m"
		a := c.do(w)
		if a.Outcome != timer.Moved || a.Due.Sub(start) != 100*time.Minute {
			t.Errorf("it is %s, due after %s", a.Outcome, a.Due.Sub(start))
		}
		w = wish(timer.Move, "k", g)
		w.By = time.Hour
		c.check(w, timer.TooLate, g) // its round has fired, wherever the next was moved to
		time.Sleep(3 * time.Hour)
		in.rounds(t, g, start, time.Hour, 100*time.Minute, 3*time.Hour, 4*time.Hour)
		for _, m := range in.all() {
			if m.Body != "body" || m.Header.Get("X-Mine") != "yes" {
				t.Errorf("there came %q %v", m.Body, m.Header)
			}
		}
		c.checkNoDead()
	})
}

// TestSeriesIsCancelled: who names the series ends it, whichever round stands there, and is told what is final.
func TestSeriesIsCancelled(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		startBroker(t, s, timersOn(t))
		c := controlsSeries(newClient(t, s))
		in := c.subscribe("orders.>")
		start := time.Now()
		g := c.publish("delaytimer.k.orders.x", "body", "Delay-Every", "1s", "Delay-Expires", "1m").Sequence
		time.Sleep(5500 * time.Millisecond)
		c.check(wish(timer.Cancel, "k", g), timer.Conflict, c.last("delaytimer.k.orders.x").Sequence)
		other := wish(timer.Cancel, "k", 0)
		other.Series = g + 1
		c.check(other, timer.Conflict, c.last("delaytimer.k.orders.x").Sequence)
		this := wish(timer.Cancel, "k", 0)
		this.Series = g
		c.check(this, timer.Cancelled, c.last("delaytimer.k.orders.x").Sequence)
		time.Sleep(time.Minute)
		in.rounds(t, g, start, times(time.Second, time.Second, 5)...)
		c.checkNoTimers()
	})
}

// TestSeriesIsPaused: no round is due while a series is paused. Resumed, it goes on by its policy.
func TestSeriesIsPaused(t *testing.T) {
	t.Parallel()
	const m = time.Minute
	for missed, want := range map[string][]time.Duration{
		"skip": {10 * m, 20 * m, 60 * m, 70 * m},
		"one":  {10 * m, 20 * m, 55 * m, 60 * m, 70 * m},
	} {
		t.Run(missed, func(t *testing.T) {
			t.Parallel()
			natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
				b := startBroker(t, s, timersOn(t))
				c := controlsSeries(newClient(t, s))
				in := c.subscribe("orders.>")
				start := time.Now()
				g := c.publish("delaytimer.k.orders.x", "body", "Delay-Every", "10m", "Delay-Missed-Rounds", missed,
					"Delay-Expires", "26m").Sequence
				time.Sleep(25 * m)
				paused := c.do(wish(timer.Pause, "k", 0))
				if paused.Outcome != timer.Paused {
					t.Errorf("it is %+v", paused)
				}
				c.check(wish(timer.Pause, "k", 0), timer.Paused, paused.Generation)
				c.check(wish(timer.Get, "k", 0), timer.Paused, paused.Generation)
				b.stop() // a pause is kept in the stream
				startBroker(t, s, timersOn(t))
				time.Sleep(time.Until(start.Add(55 * m)))
				if a := c.do(wish(timer.Resume, "k", paused.Generation)); a.Outcome != timer.Pending {
					t.Errorf("it is %+v", a)
				}
				time.Sleep(time.Until(start.Add(75 * m)))
				in.rounds(t, g, start, want...)
				c.checkNoDead()
				c.do(wish(timer.Cancel, "k", 0))
				time.Sleep(20 * m)
				c.checkNoTimers()
			})
		})
	}
}

// TestSeriesGetsAnotherTable: the body stays, and so does the number of its next round.
func TestSeriesGetsAnotherTable(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		c, in, start, g := everyHour(t, s)
		time.Sleep(90 * time.Minute)
		table, err := timetable.Parse(timetable.Words{Every: "25m"})
		if err != nil {
			t.Fatal(err)
		}
		w := wish(timer.Retime, "k", 0)
		w.Table = &table
		if a := c.do(w); a.Outcome != timer.Moved || a.Due.Sub(start) != 110*time.Minute {
			t.Errorf("it is %+v, due after %s", a, a.Due.Sub(start))
		}
		time.Sleep(time.Hour)
		in.rounds(t, g, start, time.Hour, 110*time.Minute, 135*time.Minute)
	})
}

// TestSeriesFiresBesides: fired by hand, a series delivers once more under an id of its own, and goes on as it was.
func TestSeriesFiresBesides(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := timersOn(t)
		cfg.TimerHistory = 0
		startBroker(t, s, cfg)
		c := controlsSeries(newClient(t, s))
		in := c.subscribe("orders.>")
		start := time.Now()
		g := c.publish("delaytimer.k.orders.x", "body", "Delay-Every", "1h", "X-Mine", "yes", "Delay-TTL", "10m",
			"Delay-Expires", "5m").Sequence
		time.Sleep(30 * time.Minute)
		w := wish(timer.Fire, "k", g)
		w.ID = "once"
		c.check(w, timer.Fired, g)
		time.Sleep(time.Second)
		c.check(w, timer.Fired, g) // asked again: an answer was lost
		time.Sleep(time.Second)
		synctest.Wait()
		got := in.all()
		if len(got) != 1 || got[0].Body != "body" || got[0].Header.Get("X-Mine") != "yes" ||
			got[0].Header.Get("Delay-Round") != "" || got[0].Header.Get("Nats-TTL") != "600" {
			t.Fatalf("there came %+v", got)
		}
		time.Sleep(time.Until(start.Add(150 * time.Minute)))
		var rounds string
		for _, m := range in.all() {
			rounds += fmt.Sprint(m.Header.Get("Delay-Round"), "@", m.At.Sub(start), " ")
		}
		if want := "@30m0s 1@1h0m0s 2@2h0m0s "; rounds != want {
			t.Errorf("there came %s, want %s", rounds, want)
		}
		c.checkNoDead()
	})
}

// TestOnlySeriesArePaused: what fires once is not paused; and who does not know the secrets writes no round.
func TestOnlySeriesArePaused(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		startBroker(t, s, timersOn(t))
		c := controlsSeries(newClient(t, s))
		c.publish("delaytimer.once.orders.x", "body", "Delay-For", "1h")
		c.publish("delaytimer.k.orders.x", "body", "Delay-Every", "1h")
		for _, verb := range []timer.Verb{timer.Pause, timer.Resume, timer.Retime} {
			if a, err := c.timers.Do(t.Context(), wish(verb, "once", 0)); err == nil {
				t.Errorf("%s of what fires once: %+v", verb, a)
			}
		}
		stranger := controls(c.client)
		if a, err := stranger.timers.Do(t.Context(), wish(timer.Pause, "k", 0)); err == nil {
			t.Errorf("without the secrets: %+v", a)
		}
		c.check(wish(timer.Get, "k", 0), timer.Pending, c.last("delaytimer.k.orders.x").Sequence)
	})
}
