package timers

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"delaybroker/broker/timer"
	"delaybroker/broker/timer/change"
	"delaybroker/broker/timer/timetable"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// This file tests that the broker sends a round only after the previous round is delivered or in a retry lane, even if
// a client has changed the due time of the round.

// firstSendTimes returns the duration from since to the first attempt of each round.
func firstSendTimes(in *harness.Inbox, since time.Time) map[string]time.Duration {
	synctest.Wait()
	first := make(map[string]time.Duration)
	for _, a := range in.Arrivals() {
		if round := a.Header.Get("Delay-Round"); first[round] == 0 {
			first[round] = a.At.Sub(since)
		}
	}
	return first
}

// TestChangedRoundWaitsForPrevious: the broker has sent a round, and waits five seconds for the target, which does not
// answer. During this wait, a client changes the next round, once or twice, so that it is due earlier. The broker sends
// the next round only when the previous round is in a retry lane.
func TestChangedRoundWaitsForPrevious(t *testing.T) {
	t.Parallel()
	move := func(c *harness.TimerClient, after string) {
		w := harness.NewChange(timer.Move, "k", 0)
		w.For = after
		c.Check(w, timer.Moved, c.LastEntry(recurring).Sequence+1)
	}
	for name, change := range map[string]func(c *harness.TimerClient){
		"moved":       func(c *harness.TimerClient) { move(c, "1s") },
		"moved twice": func(c *harness.TimerClient) { move(c, "1h"); move(c, "1s") },
		"resumed": func(c *harness.TimerClient) {
			c.Check(harness.NewChange(timer.Pause, "k", 0), timer.Paused, c.LastEntry(recurring).Sequence+1)
			time.Sleep(time.Second)
			c.Check(harness.NewChange(timer.Resume, "k", 0), timer.Pending, c.LastEntry(recurring).Sequence+1)
		},
		"retimed": func(c *harness.TimerClient) {
			table, err := timetable.Parse(timetable.Settings{Every: "3s", Rounds: "2"})
			natstest.NoError(c.T, err)
			w := harness.NewChange(timer.Retime, "k", 0)
			w.Table = &table
			c.Check(w, timer.Moved, c.LastEntry(recurring).Sequence+1)
		},
	} {
		natstest.Subtest(t, name, func(t *testing.T, s *natstest.Server) {
			plain := harness.StartBroker(t, s, harness.TimerConfig(t)).NewClient()
			c := harness.NewSeriesClient(plain)
			in := c.Subscribe("orders.>") // without answers
			start := time.Now()
			c.Publish(recurring, "body", "Delay-Every", "4s", "Delay-Deliver", "request", "Delay-Rounds", "2",
				"Delay-Missed-Rounds", "one", "Delay-Max-Attempts", "2")
			time.Sleep(5 * time.Second)
			change(c)
			time.Sleep(10 * time.Minute)
			if first := firstSendTimes(in, start); first["1"] != 4*time.Second || first["2"] < 9*time.Second {
				t.Errorf("the first attempts of the rounds were after %v", first)
			}
			c.CheckNoTimersBut("DELAY_DEAD")
		})
	}
}

// TestRoundFromMarkerWaitsForPrevious: an instance stores the firing of a round, and crashes. The marker of the next
// round is in a level. Another instance finds both rounds after both due times. The target does not answer. The next
// round waits for five seconds, until the first round is in a retry lane.
func TestRoundFromMarkerWaitsForPrevious(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := harness.TimerConfig(t)
		harness.StartBroker(t, s, cfg).Stop()
		c := harness.NewClient(t, s)
		in := c.Subscribe("orders.>") // without answers
		start := time.Now()
		c.Publish(recurring, "body", "Delay-Every", "10m", "Delay-Deliver", "request", "Delay-Rounds", "2",
			"Delay-Max-Attempts", "1")
		b := harness.StartBroker(t, s, cfg)
		time.Sleep(time.Until(start.Add(10*time.Minute - 1)))
		b.Stop()
		time.Sleep(1 * time.Nanosecond)
		fireRound(c, recurring, "ghost")
		time.Sleep(time.Until(start.Add(20 * time.Minute)))
		harness.StartBroker(t, s, cfg)
		time.Sleep(5 * time.Minute)
		first := firstSendTimes(in, start)
		if first["1"] < 20*time.Minute || first["2"] < first["1"]+5*time.Second {
			t.Errorf("the first attempts of the rounds were after %v", first)
		}
	})
}

// TestBoundOfSeries: DELAY_MAX_DELAY bounds the times in a request: the first round, the interval, and the time of a
// move. It does not bound the times that the broker computes from a cron expression or an interval. So every accepted
// series can be paused and resumed.
func TestBoundOfSeries(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := harness.ScheduleConfig(t)
		cfg.MaxDelay = 24 * time.Hour
		c := harness.StartBroker(t, s, cfg).NewClient()
		in := c.Subscribe("orders.>")
		start := time.Now()                               // a Saturday
		monday := start.Add(2*24*time.Hour + 9*time.Hour) // due in 57 hours
		late := start.Add(25 * time.Hour).Format(time.RFC3339)
		c.Publish("delaytimer.k.orders.x", "cron", "Delay-Cron", "0 9 * * 1")
		c.Publish("delaytimer.day.orders.x", "day", "Delay-Every", "24h", "Delay-Jitter", "1h")
		bad := [][]string{
			{"Delay-Every", "24h1s"}, {"Delay-Every", "24h1s", "Delay-For", "1s"}, {"Delay-Every", "1h", "Delay-For", "25h"},
			{"Delay-Cron", "0 9 * * 1", "Delay-Until", late},
		}
		for _, headers := range bad {
			c.Publish("delaytimer.bad.orders.x", "bad", headers...)
		}
		ask := func(verb, key, body string, want timer.Outcome, due time.Time) {
			t.Helper()
			var got change.Answer
			code := c.CallService(&got, "delayctl.timer."+verb+"."+key+".orders.x", body)
			if code != "" || got.Outcome != want || !due.IsZero() && !got.Due.Equal(due) {
				t.Errorf("%s %s returns %q %+v, want %s, due %s", verb, body, code, got, want, due)
			}
		}
		time.Sleep(time.Minute)
		harness.CheckCount(t, c.DeadLetters()["too_far"], len(bad))
		ask("get", "k", "", timer.Pending, monday)
		ask("pause", "k", "", timer.Paused, time.Time{})
		ask("resume", "k", "", timer.Pending, monday)
		ask("move", "k", `{"by":"-1h"}`, timer.Moved, monday.Add(-time.Hour))
		for verb, bodies := range map[string][]string{
			"move":   {`{"by":"1s"}`, `{"in":"24h1s"}`, `{"at":"` + late + `"}`},
			"retime": {`{"every":"24h1s"}`, `{"every":"1h","in":"25h"}`},
		} {
			for _, body := range bodies {
				checkRefused(c, "timer."+verb+".k.orders.x", body)
			}
		}
		ask("move", "k", `{"in":"24h"}`, timer.Moved, start.Add(time.Minute+24*time.Hour))
		for when, want := range map[string]bool{
			"@every 24h": true, "@every 24h0m1s": false, "0 0 0 29 2 *": true, "@at " + late: false,
		} {
			if seq, code := c.Schedule("schedules.orders.a", "orders.y", when, "hi"); (seq > 0) != want ||
				!want && code != 10189 {
				t.Errorf("%s is answered %d, %d", when, seq, code)
			}
		}
		c.TrySchedule(harness.NewMsg("schedules.orders.a", ""))
		time.Sleep(26 * time.Hour)
		ask("retime", "day", `{"cron":"0 0 29 2 *"}`, timer.Moved, time.Date(2000, 2, 29, 0, 0, 0, 0, time.UTC))
		harness.CheckBodies(t, in.Arrivals(), "cron day")
	})
}

// TestFireIsRepeated: within five minutes, repeated requests for an extra delivery with the same word cause one
// delivery, with any DELAY_TIMER_HISTORY. Afterwards the stream has no entry of the extra delivery.
func TestFireIsRepeated(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	for name, history := range map[string]time.Duration{"none": -1, "1m": time.Minute, "10m": 10 * time.Minute} {
		natstest.Subtest(t, name, func(t *testing.T, s *natstest.Server) {
			cfg := harness.TimerConfig(t)
			cfg.TimerHistory = history
			c := harness.StartBroker(t, s, cfg).NewClient()
			in := c.Subscribe("orders.>")
			c.Publish("delaytimer.k.orders.x", "body", "Delay-Every", "1d")
			start := time.Now()
			fire := func(at time.Duration, word string, want int) {
				t.Helper()
				time.Sleep(time.Until(start.Add(at)))
				var got change.Answer
				if code := c.CallService(&got, "delayctl.timer.fire.k.orders.x", `{"word":"`+word+`"}`); code != "" ||
					got.Outcome != timer.Fired {
					t.Errorf("after %s the request returns %q %+v", at, code, got)
				}
				time.Sleep(time.Second)
				if n := len(in.Arrivals()); n != want {
					t.Errorf("after %s %d arrived, want %d", at, n, want)
				}
			}
			fire(0, "once", 1)
			for _, at := range []time.Duration{2 * time.Second, 75 * time.Second, 150 * time.Second, 5*time.Minute - 1} {
				fire(at, "once", 1)
			}
			fire(5*time.Minute+2*time.Second, "another", 2)
			time.Sleep(30 * time.Minute)
			for _, a := range c.Arrivals("DELAY_TIMERS") {
				if strings.Contains(a.Subject, "fire-") {
					t.Errorf("the entry %s is left", a.Subject)
				}
			}
		})
	}
}
