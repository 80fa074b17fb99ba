package timers

import (
	"testing"
	"testing/synctest"
	"time"
	_ "time/tzdata"

	"delaybroker/broker/timer"
	"delaybroker/broker/timer/entry"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// This file tests that a series fires each round once, at the times of its table.

// TestSeriesFires: each round arrives at its due time, with body and headers. After the last round, the stream has no
// entry of the series.
func TestSeriesFires(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	for name, tt := range map[string]struct {
		headers      []string
		first, every time.Duration
		rounds       int
	}{
		"each second":    {[]string{"Delay-Every", "1s", "Delay-Rounds", "30"}, time.Second, time.Second, 30},
		"each minute":    {[]string{"Delay-Every", "1m", "Delay-Rounds", "20"}, time.Minute, time.Minute, 20},
		"for hours":      {[]string{"Delay-Every", "90m", "Delay-Rounds", "2"}, 90 * time.Minute, 90 * time.Minute, 2},
		"a later first":  {[]string{"Delay-Every", "1m", "Delay-For", "1h", "Delay-Rounds", "5"}, time.Hour, time.Minute, 5},
		"at once":        {[]string{"Delay-Every", "1h", "Delay-For", "0s", "Delay-Rounds", "2"}, 0, time.Hour, 2},
		"cron, by hours": {[]string{"Delay-Cron", "1 */2 * * *", "Delay-Rounds", "2"}, 2 * time.Hour, 2 * time.Hour, 2},
		"cron, by seconds": {[]string{"Delay-Cron", "*/10 * * * * *", "Delay-Rounds", "12"},
			10 * time.Second, 10 * time.Second, 12},
	} {
		natstest.Subtest(t, name, func(t *testing.T, s *natstest.Server) { // the clock of a bubble begins at midnight
			c := harness.StartBroker(t, s, harness.TimerConfig(t)).NewClient()
			in := c.Subscribe("orders.>")
			time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute)))
			start := time.Now()
			headers := append(tt.headers, "X-Mine", "yes", "Delay-Expires", "5m")
			g := c.Publish("delaytimer.k.orders.x", "body", headers...).Sequence
			time.Sleep(tt.first + time.Duration(tt.rounds-1)*tt.every + 10*time.Minute)
			in.CheckRounds(t, g, start, harness.RoundTimes(tt.first, tt.every, tt.rounds)...)
			for _, a := range in.Arrivals() {
				if a.Body != "body" || a.Header.Get("X-Mine") != "yes" || !a.Due.Equal(a.At) ||
					a.Header.Get("Delay-Every") != "" || a.Header.Get("Delay-First") != "" {
					t.Errorf("%q %v arrived", a.Body, a.Header)
				}
			}
			time.Sleep(time.Minute)
			c.CheckNoTimers()
		})
	}
}

// TestSeriesIsStopped: an unconditional cancel ends a series, and so does a cancel of the pending round. The stream
// refuses a cancel of a round that has fired.
func TestSeriesIsStopped(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	harness.Bubble(t, harness.TimerConfig(t), func(t *testing.T, c *harness.Client) {
		in := c.Subscribe("orders.>")
		start := time.Now()
		g := c.Publish("delaytimer.k.orders.x", "body", "Delay-Every", "1h").Sequence
		time.Sleep(150 * time.Minute)
		if c.PublishIf(g, "delaytimer.k.orders.x", "", "Delay-Cancel", "x") > 0 {
			t.Error("the cancel of the first round succeeded after its firing")
		}
		if c.PublishIf(c.LastEntry("delaytimer.k.orders.x").Sequence, "delaytimer.k.orders.x", "", "Delay-Cancel", "x") == 0 {
			t.Error("the cancel of the pending round failed")
		}
		time.Sleep(time.Hour)
		in.CheckRounds(t, g, start, time.Hour, 2*time.Hour)
		c.CheckNoTimers()

		blind := c.Subscribe("blind.>")
		g = c.Publish("delaytimer.k.blind.x", "body", "Delay-Every", "10s").Sequence
		start = time.Now()
		time.Sleep(25 * time.Second)
		c.Publish("delaytimer.k.blind.x", "", "Delay-Cancel", "x")
		time.Sleep(10 * time.Minute)
		blind.CheckRounds(t, g, start, 10*time.Second, 20*time.Second)
		c.CheckNoTimers()
	})
}

// TestMissedRounds: if rounds were due while no broker ran, the policy of the series determines how many of them the
// broker delivers. The broker counts the skipped rounds.
func TestMissedRounds(t *testing.T) {
	t.Parallel()
	const m, back = time.Minute, 55*time.Minute + 30*time.Second
	for missed, want := range map[string][]time.Duration{
		"skip": {10 * m, 20 * m, 60 * m, 70 * m},
		"one":  {10 * m, 20 * m, back, 60 * m, 70 * m},
		"all":  {10 * m, 20 * m, back, back + 100*time.Millisecond, back + 200*time.Millisecond, 60 * m, 70 * m},
	} {
		natstest.Subtest(t, missed, func(t *testing.T, s *natstest.Server) {
			b, c := harness.Start(t, s, harness.TimerConfig(t))
			in := c.Subscribe("orders.>")
			start := time.Now()
			g := c.Publish("delaytimer.k.orders.x", "body", "Delay-Every", "10m", "Delay-Missed-Rounds", missed,
				"Delay-Deliver", "core").Sequence
			time.Sleep(25 * m)
			b.Stop()
			time.Sleep(time.Until(start.Add(back)))
			b = harness.StartBroker(t, s, harness.TimerConfig(t))
			time.Sleep(time.Until(start.Add(75 * m)))
			in.CheckRounds(t, g, start, want...)
			if got, want := b.Broker.Status().MissedRounds, uint64(7-len(want)); got != want {
				t.Errorf("%d were missed, want %d", got, want)
			}
		})
	}
}

// TestMissedRoundIsRemoved: the broker removes the entry of a missed round before the next round fires. Only the
// entry of the next round remains.
func TestMissedRoundIsRemoved(t *testing.T) {
	t.Parallel()
	harness.BubbleWithBroker(t, harness.TimerConfig(t), func(t *testing.T, c *harness.Client, b *harness.Instance) {
		in := c.Subscribe("orders.>")
		start := time.Now()
		g := c.Publish(recurring, "body", "Delay-Every", "4s", "Delay-Missed-Rounds", "skip", "Delay-Deliver",
			"core").Sequence
		time.Sleep(5 * time.Second)
		b.Stop()
		time.Sleep(8 * time.Second)
		b.Replace()
		time.Sleep(time.Second)
		synctest.Wait()
		entries := 0
		for _, m := range c.Arrivals("DELAY_TIMERS") {
			if m.Subject == recurring {
				entries++
			}
		}
		if entries != 1 {
			t.Errorf("there are %d entries, want only that of the next round", entries)
		}
		time.Sleep(2*time.Second + time.Millisecond)
		in.CheckRounds(t, g, start, 4*time.Second, 16*time.Second)
	})
}

// TestMissedLastRound: the last round of a series is missed, and its policy is to skip. The series has ended, and the
// stream keeps the outcome for DELAY_TIMER_HISTORY.
func TestMissedLastRound(t *testing.T) {
	t.Parallel()
	cfg := harness.TimerConfig(t)
	cfg.TimerHistory = 10 * time.Minute
	harness.BubbleWithBroker(t, cfg, func(t *testing.T, c *harness.Client, b *harness.Instance) {
		in := c.Subscribe("orders.>")
		start := time.Now()
		g := c.Publish("delaytimer.k.orders.x", "body", "Delay-Every", "10m", "Delay-Missed-Rounds", "skip", "Delay-Last",
			start.Add(30*time.Minute).UTC().Format(time.RFC3339)).Sequence
		time.Sleep(25 * time.Minute)
		b.Stop()
		time.Sleep(30 * time.Minute)
		b = b.Replace()
		time.Sleep(time.Minute)
		in.CheckRounds(t, g, start, 10*time.Minute, 20*time.Minute)
		if got := b.Broker.Status().MissedRounds; got != 1 {
			t.Errorf("%d rounds were missed, want one", got)
		}
		a := harness.NewTimerClient(c).Do(harness.NewChange(timer.Get, "k", 0))
		if a.Outcome != timer.Fired || a.Delivery != entry.Missed {
			t.Errorf("get returns %+v", a)
		}
		time.Sleep(15 * time.Minute)
		c.CheckNoTimers()
	})
}
