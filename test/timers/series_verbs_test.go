package timers

import (
	"errors"
	"fmt"
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

// setHourly runs a broker and sets an hourly series.
func setHourly(t *testing.T, s *natstest.Server, headers ...string) (
	c *harness.TimerClient, in *harness.Inbox, start time.Time, generation uint64,
) {
	t.Helper()
	harness.StartBroker(t, s, harness.TimerConfig(t))
	c = harness.NewSeriesClient(harness.NewClient(t, s))
	in = c.Subscribe("orders.>")
	start = time.Now()
	headers = append([]string{"Delay-Every", "1h"}, headers...)
	return c, in, start, c.Publish("delaytimer.k.orders.x", "body", headers...).Sequence
}

// TestSeriesIsMoved: a move moves one round. The following rounds are due by the table.
func TestSeriesIsMoved(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		c, in, start, g := setHourly(t, s, "X-Mine", "yes")
		time.Sleep(90 * time.Minute)
		second := c.LastEntry("delaytimer.k.orders.x").Sequence
		w := harness.NewChange(timer.Move, "k", second)
		w.For = "10m"
		a := c.Do(w)
		if a.Outcome != timer.Moved || a.Due.Sub(start) != 100*time.Minute {
			t.Errorf("the move returns %s, due after %s", a.Outcome, a.Due.Sub(start))
		}
		w = harness.NewChange(timer.Move, "k", g)
		w.By = time.Hour
		c.Check(w, timer.TooLate, g) // the round of this generation has fired
		time.Sleep(3 * time.Hour)
		in.CheckRounds(t, g, start, time.Hour, 100*time.Minute, 3*time.Hour, 4*time.Hour)
		for _, m := range in.Arrivals() {
			if m.Body != "body" || m.Header.Get("X-Mine") != "yes" {
				t.Errorf("%q %v arrived", m.Body, m.Header)
			}
		}
		c.CheckNoDead()
	})
}

// TestSeriesIsCancelled: a cancel with the field series ends the series, whichever round is pending. No round follows.
func TestSeriesIsCancelled(t *testing.T) {
	t.Parallel()
	harness.Bubble(t, harness.TimerConfig(t), func(t *testing.T, plain *harness.Client) {
		c := harness.NewSeriesClient(plain)
		in := c.Subscribe("orders.>")
		start := time.Now()
		g := c.Publish("delaytimer.k.orders.x", "body", "Delay-Every", "1s", "Delay-Expires", "1m").Sequence
		time.Sleep(5500 * time.Millisecond)
		c.Check(harness.NewChange(timer.Cancel, "k", g), timer.Conflict, c.LastEntry("delaytimer.k.orders.x").Sequence)
		other := harness.NewChange(timer.Cancel, "k", 0)
		other.Series = g + 1
		c.Check(other, timer.Conflict, c.LastEntry("delaytimer.k.orders.x").Sequence)
		this := harness.NewChange(timer.Cancel, "k", 0)
		this.Series = g
		c.Check(this, timer.Cancelled, c.LastEntry("delaytimer.k.orders.x").Sequence)
		time.Sleep(time.Minute)
		in.CheckRounds(t, g, start, harness.RoundTimes(time.Second, time.Second, 5)...)
		c.CheckNoTimers()
	})
}

// TestSeriesIsPaused: no round is due while a series is paused. After the resumption, the policy of the series
// determines the next round.
func TestSeriesIsPaused(t *testing.T) {
	t.Parallel()
	const m = time.Minute
	for missed, want := range map[string][]time.Duration{
		"skip": {10 * m, 20 * m, 60 * m, 70 * m},
		"one":  {10 * m, 20 * m, 55 * m, 60 * m, 70 * m},
	} {
		natstest.Subtest(t, missed, func(t *testing.T, s *natstest.Server) {
			b := harness.StartBroker(t, s, harness.TimerConfig(t))
			c := harness.NewSeriesClient(harness.NewClient(t, s))
			in := c.Subscribe("orders.>")
			start := time.Now()
			g := c.Publish("delaytimer.k.orders.x", "body", "Delay-Every", "10m", "Delay-Missed-Rounds", missed,
				"Delay-Expires", "26m").Sequence
			time.Sleep(25 * m)
			paused := c.Do(harness.NewChange(timer.Pause, "k", 0))
			if paused.Outcome != timer.Paused {
				t.Errorf("the pause returns %+v", paused)
			}
			c.Check(harness.NewChange(timer.Pause, "k", 0), timer.Paused, paused.Generation)
			c.Check(harness.NewChange(timer.Get, "k", 0), timer.Paused, paused.Generation)
			b.Stop() // the stream keeps the pause
			harness.StartBroker(t, s, harness.TimerConfig(t))
			time.Sleep(time.Until(start.Add(55 * m)))
			if a := c.Do(harness.NewChange(timer.Resume, "k", paused.Generation)); a.Outcome != timer.Pending {
				t.Errorf("the resume returns %+v", a)
			}
			time.Sleep(time.Until(start.Add(75 * m)))
			in.CheckRounds(t, g, start, want...)
			c.CheckNoDead()
			c.Do(harness.NewChange(timer.Cancel, "k", 0))
			time.Sleep(20 * m)
			c.CheckNoTimers()
		})
	}
}

// TestSeriesGetsAnotherTable: after a change of its table, a series keeps its body and the number of its next round.
func TestSeriesGetsAnotherTable(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		c, in, start, g := setHourly(t, s)
		time.Sleep(90 * time.Minute)
		table, err := timetable.Parse(timetable.Settings{Every: "25m"})
		natstest.NoError(t, err)
		w := harness.NewChange(timer.Retime, "k", 0)
		w.Table = &table
		if a := c.Do(w); a.Outcome != timer.Moved || a.Due.Sub(start) != 110*time.Minute {
			t.Errorf("the change of the table returns %+v, due after %s", a, a.Due.Sub(start))
		}
		time.Sleep(time.Hour)
		in.CheckRounds(t, g, start, time.Hour, 110*time.Minute, 135*time.Minute)
	})
}

// TestSeriesFiresExtra: a request to fire a series makes one extra delivery, and does not change the series.
func TestSeriesFiresExtra(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	cfg := harness.TimerConfig(t)
	cfg.TimerHistory = 0
	harness.Bubble(t, cfg, func(t *testing.T, plain *harness.Client) {
		c := harness.NewSeriesClient(plain)
		in := c.Subscribe("orders.>")
		start := time.Now()
		g := c.Publish("delaytimer.k.orders.x", "body", "Delay-Every", "1h", "X-Mine", "yes", "Delay-TTL", "10m",
			"Delay-Expires", "5m").Sequence
		time.Sleep(30 * time.Minute)
		w := harness.NewChange(timer.Fire, "k", g)
		w.ID = "once"
		c.Check(w, timer.Fired, g)
		time.Sleep(time.Second)
		c.Check(w, timer.Fired, g) // the client repeats the request, as after a lost answer
		time.Sleep(time.Second)
		synctest.Wait()
		got := in.Arrivals()
		if len(got) != 1 || got[0].Body != "body" || got[0].Header.Get("X-Mine") != "yes" ||
			got[0].Header.Get("Delay-Round") != "" || got[0].Header.Get("Nats-TTL") != "600" {
			t.Fatalf("%+v arrived", got)
		}
		time.Sleep(time.Until(start.Add(150 * time.Minute)))
		var rounds string
		for _, m := range in.Arrivals() {
			rounds += fmt.Sprint(m.Header.Get("Delay-Round"), "@", m.At.Sub(start), " ")
		}
		if want := "@30m0s 1@1h0m0s 2@2h0m0s "; rounds != want {
			t.Errorf("%s arrived, want %s", rounds, want)
		}
		c.CheckNoDead()
	})
}

// TestOnlySeriesArePaused: a client does not pause, resume or retime a timer that fires once. A client without the
// secrets writes no round.
func TestOnlySeriesArePaused(t *testing.T) {
	t.Parallel()
	harness.Bubble(t, harness.TimerConfig(t), func(t *testing.T, plain *harness.Client) {
		c := harness.NewSeriesClient(plain)
		c.Publish("delaytimer.once.orders.x", "body", "Delay-For", "1h")
		c.Publish("delaytimer.k.orders.x", "body", "Delay-Every", "1h")
		for _, verb := range []timer.Verb{timer.Pause, timer.Resume, timer.Retime} {
			if a, err := c.Timers.Do(t.Context(), harness.NewChange(verb, "once", 0)); err == nil {
				t.Errorf("%s of a timer that fires once: %+v", verb, a)
			}
		}
		stranger := harness.NewTimerClient(c.Client)
		if a, err := stranger.Timers.Do(t.Context(), harness.NewChange(timer.Pause, "k", 0)); err == nil {
			t.Errorf("without the secrets: %+v", a)
		}
		c.Check(harness.NewChange(timer.Get, "k", 0), timer.Pending, c.LastEntry("delaytimer.k.orders.x").Sequence)
	})
}

// TestPausedSeriesIsNotMoved: a client does not move a paused series, since the series would fire.
func TestPausedSeriesIsNotMoved(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		c, in, start, g := setHourly(t, s)
		time.Sleep(10 * time.Minute)
		paused := c.Do(harness.NewChange(timer.Pause, "k", 0))
		for name, set := range map[string]func(*change.Change){
			"later":   func(w *change.Change) { w.By = 5 * time.Minute },
			"earlier": func(w *change.Change) { w.By = -5 * time.Minute },
			"for":     func(w *change.Change) { w.For = "10m" },
			"until":   func(w *change.Change) { w.Until = time.Now().Add(time.Minute) },
		} {
			w := harness.NewChange(timer.Move, "k", 0)
			set(&w)
			a, err := c.Timers.Do(t.Context(), w)
			if refused := (*change.Error)(nil); !errors.As(err, &refused) || !strings.Contains(refused.Sentence, "resume") {
				t.Errorf("the move %s returns %+v, %v", name, a, err)
			}
			time.Sleep(15 * time.Minute)
			c.Check(harness.NewChange(timer.Get, "k", 0), timer.Paused, paused.Generation)
		}
		if got := in.Arrivals(); len(got) != 0 {
			t.Errorf("%+v arrived during the pause", got)
		}
		time.Sleep(time.Until(start.Add(90 * time.Minute)))
		if a := c.Do(harness.NewChange(timer.Resume, "k", 0)); a.Outcome != timer.Pending {
			t.Errorf("the resume returns %+v", a)
		}
		time.Sleep(time.Hour)
		in.CheckRounds(t, g, start, 90*time.Minute, 2*time.Hour)
	})
}

// TestResumeWithoutPause: a resume of a series that is not paused changes nothing. A moved round keeps its time.
func TestResumeWithoutPause(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		c, in, start, g := setHourly(t, s)
		time.Sleep(10 * time.Minute)
		w := harness.NewChange(timer.Move, "k", g)
		w.For = "40m"
		moved := c.Do(w)
		a := c.Do(harness.NewChange(timer.Resume, "k", 0))
		if a.Outcome != timer.Pending || a.Generation != moved.Generation || !a.Due.Equal(moved.Due) {
			t.Errorf("the resume returns %+v, want %+v", a, moved)
		}
		c.Check(harness.NewChange(timer.Resume, "k", g), timer.Conflict, moved.Generation)
		time.Sleep(2 * time.Hour)
		in.CheckRounds(t, g, start, 50*time.Minute, 2*time.Hour)
	})
}
