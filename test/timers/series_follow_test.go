package timers

import (
	"testing"
	"testing/synctest"
	"time"

	"delaybroker/broker/lease"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/timetable"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// This file tests that a round is sent only after the previous one has left, even if the due time of the round was
// changed: at most one round of a series is underway.

// firstSent returns, for each round, the time from since until the round was first sent.
func firstSent(in *harness.Inbox, since time.Time) map[string]time.Duration {
	synctest.Wait()
	first := make(map[string]time.Duration)
	for _, a := range in.All() {
		if round := a.Header.Get("Delay-Round"); first[round] == 0 {
			first[round] = a.At.Sub(since)
		}
	}
	return first
}

// TestChangedRoundWaitsForTheOneBefore: a round is underway to a target that does not answer, for which the broker
// waits five seconds. Meanwhile a client changes the next round, once or twice, so that the next round is due earlier.
// The next round is sent only when the previous one is in a retry lane.
func TestChangedRoundWaitsForTheOneBefore(t *testing.T) {
	t.Parallel()
	move := func(c *harness.TimerClient, after string) {
		w := harness.NewChange(timer.Move, "k", 0)
		w.For = after
		c.Check(w, timer.Moved, c.Last(recurring).Sequence+1)
	}
	for name, change := range map[string]func(c *harness.TimerClient){
		"moved":       func(c *harness.TimerClient) { move(c, "1s") },
		"moved twice": func(c *harness.TimerClient) { move(c, "1h"); move(c, "1s") },
		"resumed": func(c *harness.TimerClient) {
			c.Check(harness.NewChange(timer.Pause, "k", 0), timer.Paused, c.Last(recurring).Sequence+1)
			time.Sleep(time.Second)
			c.Check(harness.NewChange(timer.Resume, "k", 0), timer.Pending, c.Last(recurring).Sequence+1)
		},
		"retimed": func(c *harness.TimerClient) {
			table, err := timetable.Parse(timetable.Words{Every: "3s", Rounds: "2"})
			natstest.NoError(c.T, err)
			w := harness.NewChange(timer.Retime, "k", 0)
			w.Table = &table
			c.Check(w, timer.Moved, c.Last(recurring).Sequence+1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			harness.Bubble(t, harness.TimersOn(t), func(t *testing.T, plain *harness.Client) {
				c := harness.NewSeriesClient(plain)
				in := c.Subscribe("orders.>") // it answers nothing
				start := time.Now()
				c.Publish(recurring, "body", "Delay-Every", "4s", "Delay-Deliver", "request", "Delay-Rounds", "2",
					"Delay-Missed-Rounds", "one", "Delay-Max-Attempts", "2")
				time.Sleep(5 * time.Second)
				change(c)
				time.Sleep(10 * time.Minute)
				if first := firstSent(in, start); first["1"] != 4*time.Second || first["2"] < 9*time.Second {
					t.Errorf("the rounds were first sent after %v", first)
				}
				c.CheckNoTimersBut("DELAY_DEAD")
			})
		})
	}
}

// TestRoundFromItsMarkerWaitsForTheOneBefore: an instance has stored that a round fires, and crashes. The marker of the
// next round is in a level. Another instance finds both rounds when both are due. The target does not answer. The next
// round waits for five seconds, until the first one is in a retry lane.
func TestRoundFromItsMarkerWaitsForTheOneBefore(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := harness.TimersOn(t)
		cfg.Leaser = lease.Static{} // an instance leaves the firing of another one to it for a while
		harness.StartBroker(t, s, cfg).Stop()
		c := harness.NewClient(t, s)
		in := c.Subscribe("orders.>") // it answers nothing
		start := time.Now()
		c.Publish(recurring, "body", "Delay-Every", "10m", "Delay-Deliver", "request", "Delay-Rounds", "2",
			"Delay-Max-Attempts", "1")
		b := harness.StartBroker(t, s, cfg)
		time.Sleep(time.Until(start.Add(10*time.Minute - 1)))
		b.Stop()
		time.Sleep(1 * time.Nanosecond)
		fireRound(c, recurring, "ghost")
		b = harness.StartBroker(t, s, cfg)
		time.Sleep(2 * time.Second)
		b.Stop()
		time.Sleep(time.Until(start.Add(20 * time.Minute)))
		harness.StartBroker(t, s, cfg)
		time.Sleep(5 * time.Minute)
		first := firstSent(in, start)
		if first["1"] < 20*time.Minute || first["2"] < first["1"]+5*time.Second {
			t.Errorf("the rounds were first sent after %v", first)
		}
	})
}
