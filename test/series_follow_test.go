package test

import (
	"testing"
	"testing/synctest"
	"time"

	"delaybroker/broker/lease"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/timetable"
	"delaybroker/test/natstest"
)

// A round follows the one before it, whatever has become of its own time: at most one of a series is on its way.

// firstSent says how long after a moment each round was first sent.
func (in *inbox) firstSent(since time.Time) map[string]time.Duration {
	synctest.Wait()
	first := make(map[string]time.Duration)
	for _, a := range in.all() {
		if round := a.Header.Get("Delay-Round"); first[round] == 0 {
			first[round] = a.At.Sub(since)
		}
	}
	return first
}

// TestChangedRoundWaitsForTheOneBefore: a round is on its way to a target that does not answer for five seconds.
// Meanwhile somebody changes when the next is due, once or twice. It is due before those five seconds are over, and is
// sent when the one before is in a retry lane.
func TestChangedRoundWaitsForTheOneBefore(t *testing.T) {
	t.Parallel()
	move := func(c *controlled, after string) {
		w := wish(timer.Move, "k", 0)
		w.For = after
		c.check(w, timer.Moved, c.last(recurring).Sequence+1)
	}
	for name, change := range map[string]func(c *controlled){
		"moved":       func(c *controlled) { move(c, "1s") },
		"moved twice": func(c *controlled) { move(c, "1h"); move(c, "1s") },
		"resumed": func(c *controlled) {
			c.check(wish(timer.Pause, "k", 0), timer.Paused, c.last(recurring).Sequence+1)
			time.Sleep(time.Second)
			c.check(wish(timer.Resume, "k", 0), timer.Pending, c.last(recurring).Sequence+1)
		},
		"retimed": func(c *controlled) {
			table, err := timetable.Parse(timetable.Words{Every: "3s", Rounds: "2"})
			if err != nil {
				c.t.Fatal(err)
			}
			w := wish(timer.Retime, "k", 0)
			w.Table = &table
			c.check(w, timer.Moved, c.last(recurring).Sequence+1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
				startBroker(t, s, timersOn(t))
				c := controlsSeries(newClient(t, s))
				in := c.subscribe("orders.>") // it answers nothing
				start := time.Now()
				c.publish(recurring, "body", "Delay-Every", "4s", "Delay-Deliver", "request", "Delay-Rounds", "2",
					"Delay-Missed-Rounds", "one", "Delay-Max-Attempts", "2")
				time.Sleep(5 * time.Second)
				change(c)
				time.Sleep(10 * time.Minute)
				if first := in.firstSent(start); first["1"] != 4*time.Second || first["2"] < 9*time.Second {
					t.Errorf("the rounds were first sent after %v", first)
				}
				c.checkNoTimersBut("DELAY_DEAD")
			})
		})
	}
}

// TestRoundFromItsMarkerWaitsForTheOneBefore: an instance has stored that a round fires, and dies; the next round's
// marker is in a level. Both are found when both are due. The target does not answer for five seconds, and so long the
// next one waits.
func TestRoundFromItsMarkerWaitsForTheOneBefore(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := timersOn(t)
		cfg.Leaser = lease.Static{} // what others have fired is left to them for a while
		startBroker(t, s, cfg).stop()
		c := newClient(t, s)
		in := c.subscribe("orders.>") // it answers nothing
		start := time.Now()
		c.publish(recurring, "body", "Delay-Every", "10m", "Delay-Deliver", "request", "Delay-Rounds", "2",
			"Delay-Max-Attempts", "1")
		b := startBroker(t, s, cfg)
		time.Sleep(time.Until(start.Add(10*time.Minute - 1)))
		b.stop()
		time.Sleep(1 * time.Nanosecond)
		c.fireRound(recurring, "ghost")
		b = startBroker(t, s, cfg)
		time.Sleep(2 * time.Second)
		b.stop()
		time.Sleep(time.Until(start.Add(20 * time.Minute)))
		startBroker(t, s, cfg)
		time.Sleep(5 * time.Minute)
		first := in.firstSent(start)
		if first["1"] < 20*time.Minute || first["2"] < first["1"]+5*time.Second {
			t.Errorf("the rounds were first sent after %v", first)
		}
	})
}
