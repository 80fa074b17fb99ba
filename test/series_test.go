package test

import (
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
	_ "time/tzdata"

	"delaybroker/broker/timer"
	"delaybroker/broker/timer/entry"
	"delaybroker/test/natstest"
)

// A timer that recurs fires once for each round, and keeps its table whatever happens.

// rounds checks that the rounds of a series have arrived at these times after a moment: each once, in order, as what it
// is.
func (in *inbox) rounds(t *testing.T, series uint64, since time.Time, want ...time.Duration) {
	t.Helper()
	synctest.Wait()
	got := in.all()
	if len(got) != len(want) {
		for _, a := range got {
			t.Logf("after %s round %s, due %s: %s", a.At.Sub(since), a.Header.Get("Delay-Round"), a.Due.Sub(since), a.ID)
		}
		t.Fatalf("%d rounds have arrived, want %d", len(got), len(want))
	}
	ids := make(map[string]bool)
	for i, a := range got {
		if a.At.Sub(since) != want[i] || a.Header.Get("Delay-Round") != strconv.Itoa(i+1) ||
			a.Header.Get("Delay-Series") != fmt.Sprint(series) {
			t.Errorf("after %s came round %s of series %s, due after %s; want round %d after %s", a.At.Sub(since),
				a.Header.Get("Delay-Round"), a.Header.Get("Delay-Series"), a.Due.Sub(since), i+1, want[i])
		}
		if ids[a.ID] {
			t.Errorf("round %d has the id of another: %s", i+1, a.ID)
		}
		ids[a.ID] = true
	}
}

func times(first, every time.Duration, n int) (all []time.Duration) {
	for i := range n {
		all = append(all, first+time.Duration(i)*every)
	}
	return all
}

// TestSeriesFires: each round arrives when it is due, with body and headers, whether it is held in memory or waits in
// the levels. After the last there is nothing left.
func TestSeriesFires(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		headers      []string
		first, every time.Duration
		rounds       int
	}{
		"each second":    {[]string{"Delay-Every", "1s", "Delay-Rounds", "30"}, time.Second, time.Second, 30},
		"each minute":    {[]string{"Delay-Every", "1m", "Delay-Rounds", "20"}, time.Minute, time.Minute, 20},
		"for hours":      {[]string{"Delay-Every", "3h", "Delay-Rounds", "2"}, 3 * time.Hour, 3 * time.Hour, 2},
		"a later first":  {[]string{"Delay-Every", "1m", "Delay-For", "1h", "Delay-Rounds", "5"}, time.Hour, time.Minute, 5},
		"at once":        {[]string{"Delay-Every", "1h", "Delay-For", "0s", "Delay-Rounds", "3"}, 0, time.Hour, 3},
		"cron, by hours": {[]string{"Delay-Cron", "1 */2 * * *", "Delay-Rounds", "3"}, 2 * time.Hour, 2 * time.Hour, 3},
		"cron, by seconds": {[]string{"Delay-Cron", "*/10 * * * * *", "Delay-Rounds", "12"},
			10 * time.Second, 10 * time.Second, 12},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
				time.Sleep(time.Until(time.Now().Truncate(24 * time.Hour).Add(24 * time.Hour)))
				startBroker(t, s, timersOn(t))
				c := newClient(t, s)
				in := c.subscribe("orders.>")
				time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute)))
				start := time.Now()
				headers := append(tt.headers, "X-Mine", "yes", "Delay-Expires", "5m")
				g := c.publish("delaytimer.k.orders.x", "body", headers...).Sequence
				time.Sleep(tt.first + time.Duration(tt.rounds-1)*tt.every + 30*time.Minute)
				in.rounds(t, g, start, times(tt.first, tt.every, tt.rounds)...)
				for _, a := range in.all() {
					if a.Body != "body" || a.Header.Get("X-Mine") != "yes" || !a.Due.Equal(a.At) ||
						a.Header.Get("Delay-Every") != "" || a.Header.Get("Delay-First") != "" {
						t.Errorf("there came %q %v", a.Body, a.Header)
					}
				}
				time.Sleep(time.Minute)
				c.checkNoTimers()
			})
		})
	}
}

// TestSeriesIsStopped: a cancel without expectation ends a series, and so does one that expects the pending round. One
// that expects a round that has fired is refused.
func TestSeriesIsStopped(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		startBroker(t, s, timersOn(t))
		c := newClient(t, s)
		in := c.subscribe("orders.>")
		start := time.Now()
		g := c.publish("delaytimer.k.orders.x", "body", "Delay-Every", "1h").Sequence
		time.Sleep(150 * time.Minute)
		if c.expect(g, "delaytimer.k.orders.x", "", "Delay-Cancel", "x") > 0 {
			t.Error("the first round is cancelled although it has fired")
		}
		if c.expect(c.last("delaytimer.k.orders.x").Sequence, "delaytimer.k.orders.x", "", "Delay-Cancel", "x") == 0 {
			t.Error("the pending round cannot be cancelled")
		}
		time.Sleep(2 * time.Hour)
		in.rounds(t, g, start, time.Hour, 2*time.Hour)
		c.checkNoTimers()

		blind := c.subscribe("blind.>")
		g = c.publish("delaytimer.k.blind.x", "body", "Delay-Every", "10s").Sequence
		start = time.Now()
		time.Sleep(25 * time.Second)
		c.publish("delaytimer.k.blind.x", "", "Delay-Cancel", "x")
		time.Sleep(2 * time.Hour)
		blind.rounds(t, g, start, 10*time.Second, 20*time.Second)
		c.checkNoTimers()
	})
}

// TestMissedRounds: what becomes of the rounds that fall into a time without a broker. Those that are left out are
// counted.
func TestMissedRounds(t *testing.T) {
	t.Parallel()
	const m, back = time.Minute, 55*time.Minute + 30*time.Second
	for missed, want := range map[string][]time.Duration{
		"skip": {10 * m, 20 * m, 60 * m, 70 * m},
		"one":  {10 * m, 20 * m, back, 60 * m, 70 * m},
		"all":  {10 * m, 20 * m, back, back + 100*time.Millisecond, back + 200*time.Millisecond, 60 * m, 70 * m},
	} {
		t.Run(missed, func(t *testing.T) {
			t.Parallel()
			natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
				b := startBroker(t, s, timersOn(t))
				c := newClient(t, s)
				in := c.subscribe("orders.>")
				start := time.Now()
				g := c.publish("delaytimer.k.orders.x", "body", "Delay-Every", "10m", "Delay-Missed-Rounds", missed,
					"Delay-Deliver", "core").Sequence
				time.Sleep(25 * m)
				b.stop()
				time.Sleep(time.Until(start.Add(back)))
				b = startBroker(t, s, timersOn(t))
				time.Sleep(time.Until(start.Add(75 * m)))
				in.rounds(t, g, start, want...)
				if got, want := b.broker.Status().Missed, uint64(7-len(want)); got != want {
					t.Errorf("%d were missed, want %d", got, want)
				}
			})
		})
	}
}

// TestMissedRoundIsRemoved: a round that was missed leaves its entry to nobody: the next round is all there is, long
// before that one fires.
func TestMissedRoundIsRemoved(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		b := startBroker(t, s, timersOn(t))
		c := newClient(t, s)
		in := c.subscribe("orders.>")
		start := time.Now()
		g := c.publish(recurring, "body", "Delay-Every", "4s", "Delay-Missed-Rounds", "skip", "Delay-Deliver",
			"core").Sequence
		time.Sleep(5 * time.Second)
		b.stop()
		time.Sleep(8 * time.Second)
		startBroker(t, s, timersOn(t))
		time.Sleep(time.Second)
		synctest.Wait()
		entries := 0
		for _, m := range c.arrivals("DELAY_TIMERS") {
			if m.Subject == recurring {
				entries++
			}
		}
		if entries != 1 {
			t.Errorf("there are %d entries, want that of the next round alone", entries)
		}
		time.Sleep(2*time.Second + time.Millisecond)
		in.rounds(t, g, start, 4*time.Second, 16*time.Second)
	})
}

// TestMissedAtTheEnd: the last round of a series is missed, and its policy is to skip. Then the series is over, and
// says so for a while.
func TestMissedAtTheEnd(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := timersOn(t)
		cfg.TimerHistory = 10 * time.Minute
		b := startBroker(t, s, cfg)
		c := newClient(t, s)
		in := c.subscribe("orders.>")
		start := time.Now()
		g := c.publish("delaytimer.k.orders.x", "body", "Delay-Every", "10m", "Delay-Missed-Rounds", "skip", "Delay-Last",
			start.Add(30*time.Minute).UTC().Format(time.RFC3339)).Sequence
		time.Sleep(25 * time.Minute)
		b.stop()
		time.Sleep(30 * time.Minute)
		b = startBroker(t, s, cfg)
		time.Sleep(time.Minute)
		in.rounds(t, g, start, 10*time.Minute, 20*time.Minute)
		if got := b.broker.Status().Missed; got != 1 {
			t.Errorf("%d were missed, want the last", got)
		}
		if a := controls(c).do(wish(timer.Get, "k", 0)); a.Outcome != timer.Fired || a.Became != entry.Missed {
			t.Errorf("it is %+v", a)
		}
		time.Sleep(time.Hour)
		c.checkNoTimers()
	})
}
