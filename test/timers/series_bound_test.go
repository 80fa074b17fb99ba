package timers

import (
	"strings"
	"testing"
	"time"

	"delaybroker/broker/timer"
	"delaybroker/broker/timer/store"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestBoundOfSeries: DELAY_MAX_DELAY bounds the times in a request: those of the first round, an interval and a move.
// It does not bound the times of a cron expression, or times that the broker computes from the table. So every accepted
// series can be paused and resumed.
func TestBoundOfSeries(t *testing.T) {
	natstest.Long(t)
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := harness.SchedulesOn(t)
		cfg.MaxDelay = 24 * time.Hour
		c := harness.StartBroker(t, s, cfg).NewClient()
		in := c.Subscribe("orders.>")
		start := time.Now()                               // a Saturday
		monday := start.Add(2*24*time.Hour + 9*time.Hour) // in 57 hours
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
			var got store.Answer
			code := c.CallService(&got, "delayctl.timer."+verb+"."+key+".orders.x", body)
			if code != "" || got.Outcome != want || !due.IsZero() && !got.Due.Equal(due) {
				t.Errorf("%s %s says %q %+v, want %s, due %s", verb, body, code, got, want, due)
			}
		}
		time.Sleep(time.Minute)
		if got := len(c.Dead()["too_far"]); got != len(bad) {
			t.Errorf("%d of %d sets are too far", got, len(bad))
		}
		ask("get", "k", "", timer.Pending, monday)
		ask("pause", "k", "", timer.Paused, time.Time{})
		ask("resume", "k", "", timer.Pending, monday)
		ask("move", "k", `{"by":"-1h"}`, timer.Moved, monday.Add(-time.Hour))
		for verb, bodies := range map[string][]string{
			"move":   {`{"by":"1s"}`, `{"for":"24h1s"}`, `{"until":"` + late + `"}`},
			"retime": {`{"every":"24h1s"}`, `{"every":"1h","for":"25h"}`},
		} {
			for _, body := range bodies {
				checkRefused(c, "timer."+verb+".k.orders.x", body)
			}
		}
		ask("move", "k", `{"for":"24h"}`, timer.Moved, start.Add(time.Minute+24*time.Hour))
		for when, want := range map[string]bool{
			"@every 24h": true, "@every 24h0m1s": false, "0 0 0 29 2 *": true, "@at " + late: false,
		} {
			if seq, code := c.Schedule("schedules.orders.a", "orders.y", when, "hi"); (seq > 0) != want ||
				!want && code != 10189 {
				t.Errorf("%s is answered %d, %d", when, seq, code)
			}
		}
		c.Plan(harness.NewMsg("schedules.orders.a", ""))
		time.Sleep(36 * time.Hour)
		ask("retime", "day", `{"cron":"0 0 29 2 *"}`, timer.Moved, time.Date(2000, 2, 29, 0, 0, 0, 0, time.UTC))
		harness.CheckBodies(t, in.All(), "cron day")
	})
}

// TestFireIsRepeated: repeated requests for an extra delivery with the same word cause one delivery, for five minutes,
// with any history. Later no entry of the extra delivery is left.
func TestFireIsRepeated(t *testing.T) {
	natstest.Long(t)
	t.Parallel()
	for name, history := range map[string]time.Duration{"none": -1, "1m": time.Minute, "10m": 10 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := harness.TimersOn(t)
			cfg.TimerHistory = history
			harness.Bubble(t, cfg, func(t *testing.T, c *harness.Client) {
				in := c.Subscribe("orders.>")
				c.Publish("delaytimer.k.orders.x", "body", "Delay-Every", "1d")
				start := time.Now()
				fire := func(at time.Duration, word string, want int) {
					t.Helper()
					time.Sleep(time.Until(start.Add(at)))
					var got store.Answer
					if code := c.CallService(&got, "delayctl.timer.fire.k.orders.x", `{"word":"`+word+`"}`); code != "" ||
						got.Outcome != timer.Fired {
						t.Errorf("after %s it says %q %+v", at, code, got)
					}
					time.Sleep(time.Second)
					if n := len(in.All()); n != want {
						t.Errorf("after %s %d arrived, want %d", at, n, want)
					}
				}
				fire(0, "once", 1)
				for _, at := range []time.Duration{2 * time.Second, 75 * time.Second, 150 * time.Second, 5*time.Minute - 1} {
					fire(at, "once", 1)
				}
				fire(5*time.Minute+2*time.Second, "another", 2)
				time.Sleep(2 * time.Hour)
				for _, a := range c.Arrivals("DELAY_TIMERS") {
					if strings.Contains(a.Subject, "fire-") {
						t.Errorf("there is left %s", a.Subject)
					}
				}
			})
		})
	}
}
