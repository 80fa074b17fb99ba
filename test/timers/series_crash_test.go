package timers

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"delaybroker/broker/lease"
	"delaybroker/broker/message"
	"delaybroker/broker/timer/entry"
	"delaybroker/levels"
	"delaybroker/test/harness"
	"delaybroker/test/harness/static"
	"delaybroker/test/natstest"
)

// fireRound stores the firing of the pending round of a series, as an instance does before it delivers.
func fireRound(c *harness.Client, subject, instance string) {
	c.T.Helper()
	c.ReplaceEntry(subject, func(r entry.Pending, generation uint64) message.Header {
		series, round := r.Round()
		table := r.Series.Table
		return r.RoundHeader(generation, entry.Next{
			Instance: instance, Round: table.Decide(series, round, time.Now()).Next, Table: table, First: series.First,
		})
	})
}

const recurring = "delaytimer.k.orders.x"

// TestRoundFiredAndNotDelivered: an instance stores the firing of a round, and crashes. The next owner delivers the
// round, even if a client has stored a later entry, or the marker is lost. The next round arrives at its due time,
// unless the later entry has ended the series.
func TestRoundFiredAndNotDelivered(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	for name, tt := range map[string]struct {
		every  time.Duration
		leaser lease.Leaser            // nil for a single instance
		lose   bool                    // the marker is lost
		over   func(c *harness.Client) // stores a later entry, which ends the series
	}{
		"alone":              {every: 10 * time.Minute},
		"in memory":          {every: 4 * time.Second},
		"apart":              {every: 10 * time.Minute, leaser: static.Leaser{}},
		"its marker is lost": {every: 10 * time.Minute, lose: true},
		"cancelled": {every: 10 * time.Minute, over: func(c *harness.Client) {
			c.PublishIf(c.LastEntry(recurring).Sequence, recurring, "", "Delay-Cancel", "x")
		}},
		"cancelled blindly": {every: 10 * time.Minute, lose: true, over: func(c *harness.Client) {
			c.Publish(recurring, "", "Delay-Cancel", "x")
		}},
		"set anew": {every: 10 * time.Minute, over: func(c *harness.Client) {
			c.Publish(recurring, "other", "Delay-For", "9h")
		}},
	} {
		natstest.Subtest(t, name, func(t *testing.T, s *natstest.Server) {
			cfg := harness.TimerConfig(t)
			cfg.Leaser = tt.leaser
			b, c := harness.Start(t, s, cfg)
			in := c.Subscribe("orders.>")
			start := time.Now()
			g := c.Publish(recurring, "body", "Delay-Every", levels.FormatDuration(tt.every), "X-Mine", "yes",
				"Delay-Deliver", "core").Sequence
			time.Sleep(tt.every / 2)
			b.Stop()
			time.Sleep(time.Until(start.Add(tt.every)))
			fireRound(c, recurring, "ghost")
			if tt.over != nil {
				tt.over(c)
			}
			if tt.lose {
				c.Purge("DELAY_1m")
			}
			harness.StartBroker(t, s, cfg)
			time.Sleep(time.Until(start.Add(tt.every + 2*time.Second)))
			synctest.Wait()
			if tt.lose {
				time.Sleep(time.Until(start.Add(tt.every + 2*time.Minute)))
				synctest.Wait()
			}
			got := in.Arrivals()
			if len(got) != 1 || got[0].Body != "body" || got[0].Header.Get("X-Mine") != "yes" {
				t.Fatalf("%+v arrived, want the round once", got)
			}
			want := message.ID{Stream: "DELAY_TIMERS", Sequence: g, At: start}.String()
			if a := got[0]; a.ID != want || !a.Due.Equal(start.Add(tt.every)) || a.Header.Get("Delay-Round") != "1" ||
				!tt.lose && !a.At.Equal(a.Due) {
				t.Errorf("the round arrived at %s with the id %s, due %s, number %s; want the id %s", a.At.Sub(start), a.ID,
					a.Due.Sub(start),
					a.Header.Get("Delay-Round"), want)
			}
			time.Sleep(time.Until(start.Add(2*tt.every + time.Second)))
			synctest.Wait()
			if got := in.Arrivals(); tt.over == nil && (len(got) != 2 || got[1].Header.Get("Delay-Round") != "2" ||
				got[1].At.Sub(start) != 2*tt.every) || tt.over != nil && len(got) != 1 {
				t.Errorf("afterwards %+v arrived", got[1:])
			}
			c.CheckNoDead()
		})
	}
}

// TestRoundDeliveredAndNotRemoved: a crash prevents the removal of the entry of a delivered round. The next broker
// delivers the round again under the same id, so a stream stores the round once, and the series continues.
func TestRoundDeliveredAndNotRemoved(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := harness.TimerConfig(t)
		silent := harness.Mute(t, s, &cfg, "STREAM.MSG.DELETE.DELAY_TIMERS")
		b, c := harness.Start(t, s, cfg)
		c.Target("ORDERS", "orders.>")
		in := c.Subscribe("orders.>")
		start := time.Now()
		c.Publish(recurring, "body", "Delay-Every", "1m")
		time.Sleep(50 * time.Second)
		silent.Store(true)
		time.Sleep(15 * time.Second)
		b.Crash()
		silent.Store(false)
		harness.StartBroker(t, s, cfg)
		time.Sleep(time.Until(start.Add(5*time.Minute + time.Second)))
		synctest.Wait()
		if n := harness.Pending(c, "ORDERS"); n != 5 {
			t.Errorf("the target's stream has %d messages, want 5", n)
		}
		harness.CheckCount(t, in.Arrivals(), 6)
		if n := len(c.Arrivals("DELAY_TIMERS")); n > 3 {
			t.Errorf("there are still %d entries", n)
		}
	})
}

// TestRoundFoundBySweep: the marker of a pending round is lost with its level. The round fires at most two minutes
// late, and the series continues.
func TestRoundFoundBySweep(t *testing.T) {
	t.Parallel()
	harness.BubbleWithBroker(t, harness.TimerConfig(t), func(t *testing.T, c *harness.Client, b *harness.Instance) {
		in := c.Subscribe("orders.>")
		start := time.Now()
		c.Publish(recurring, "body", "Delay-Every", "30m")
		time.Sleep(35 * time.Minute)
		b.Stop()
		c.Purge("DELAY_10m")
		b.Replace()
		time.Sleep(time.Until(start.Add(time.Hour)) - 1)
		synctest.Wait()
		harness.CheckCount(t, in.Arrivals(), 1)
		time.Sleep(2 * time.Minute)
		harness.CheckCount(t, in.Arrivals(), 2)
		time.Sleep(time.Until(start.Add(90*time.Minute + time.Second)))
		synctest.Wait()
		if got := in.Arrivals(); len(got) != 3 || got[2].At.Sub(start) != 90*time.Minute {
			t.Errorf("%+v arrived", got)
		}
	})
}

// TestRoundWaitsForPrevious: the target does not answer. Each due round fires only when the previous round is in a
// retry lane, after five seconds.
func TestRoundWaitsForPrevious(t *testing.T) {
	t.Parallel()
	harness.Bubble(t, harness.TimerConfig(t), func(t *testing.T, c *harness.Client) {
		in := c.Subscribe("orders.>") // without answers
		start := time.Now()
		c.Publish(recurring, "body", "Delay-Every", "1s", "Delay-Deliver", "request", "Delay-Rounds", "4")
		time.Sleep(time.Minute)
		first := firstSendTimes(in, start)
		if first["1"] != time.Second || first["2"] < 5*time.Second || first["3"] < first["2"]+5*time.Second {
			t.Errorf("the first attempts of the rounds were after %v", first)
		}
	})
}

// TestRoundIsCancelledWhileItWaits: a due round waits for the previous round, whose target does not answer. A client
// cancels the waiting round. The broker retries the previous round and removes the cancelled round. At the end, neither
// round is in memory or in a stream.
func TestRoundIsCancelledWhileItWaits(t *testing.T) {
	t.Parallel()
	cfg := harness.TimerConfig(t)
	cfg.Ladder = harness.Ladder(t, "1s 5s")
	harness.BubbleWithBroker(t, cfg, func(t *testing.T, c *harness.Client, b *harness.Instance) {
		in := c.Subscribe("orders.>") // without answers
		start := time.Now()
		c.Publish(recurring, "body", "Delay-Every", "4s", "Delay-Deliver", "request", "Delay-Max-Attempts", "1")
		time.Sleep(8500 * time.Millisecond)
		c.Publish(recurring, "", "Delay-Cancel", "x")
		time.Sleep(10 * time.Minute)
		for _, a := range in.Arrivals() {
			if a.Header.Get("Delay-Round") != "1" {
				t.Errorf("after %s arrived round %s", a.At.Sub(start), a.Header.Get("Delay-Round"))
			}
		}
		for _, l := range b.Broker.Status().Lanes {
			if l.Held != 0 {
				t.Errorf("%s has %d in memory", l.Stream, l.Held)
			}
		}
		c.CheckNoTimersBut("DELAY_DEAD")
	})
}

// TestForgedRounds: a forged round of a client, or a redirected answer, on the subject of a series becomes a dead
// letter. It replaces the pending round, so no further round fires.
func TestForgedRounds(t *testing.T) {
	t.Parallel()
	for name, forge := range map[string]func(h nats.Header) nats.Header{
		"without a seal": func(h nats.Header) nats.Header { h.Del("Delay-Seal"); return h },
		"another round":  func(h nats.Header) nats.Header { h.Set("Delay-Round", "3"); return h },
		"relayed":        func(h nats.Header) nats.Header { h.Set("Nats-Stream", "DELAY_TIMERS"); return h },
		"stored anew":    func(h nats.Header) nats.Header { return h }, // a client has read this entry, and publishes a copy
	} {
		natstest.Subtest(t, name, func(t *testing.T, s *natstest.Server) {
			c := harness.StartBroker(t, s, harness.TimerConfig(t)).NewClient()
			in := c.Subscribe("orders.>")
			c.Publish(recurring, "body", "Delay-Every", "10m")
			time.Sleep(15 * time.Minute)
			m := c.LastEntry(recurring)
			c.Store(&nats.Msg{Subject: recurring, Header: forge(harness.WrittenHeaders(m.Header)), Data: m.Data})
			time.Sleep(30 * time.Minute)
			if got := in.Arrivals(); len(got) != 1 {
				t.Errorf("%+v arrived", got[1:])
			}
			if dead := c.DeadLetters()[string(message.BadInternal)]; len(dead) != 1 ||
				!strings.Contains(dead[0].Header.Get(message.HeaderError), "the entry before it is replaced") {
				t.Errorf("the dead letters are %+v", c.DeadLetters())
			}
		})
	}
}

// TestRoundWithTwoOwners: two instances act at the same time, as in an outage. The target's stream stores each round
// once: both send it under one id.
func TestRoundWithTwoOwners(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := harness.TimerConfig(t)
		cfg.Leaser = static.Leaser{}
		harness.StartBroker(t, s, cfg)
		c := harness.StartBroker(t, s, cfg).NewClient()
		c.Target("ORDERS", "orders.>")
		c.Target("SHORT", "short.>")
		c.Publish(recurring, "body", "Delay-Every", "10m")
		c.Publish("delaytimer.k.short.x", "body", "Delay-Every", "3s", "Delay-Rounds", "5")
		time.Sleep(35 * time.Minute)
		harness.CheckOnTime(t, c.Arrivals("ORDERS"), 3)
		harness.CheckOnTime(t, c.Arrivals("SHORT"), 5)
	})
}

// TestLargeSeries: a set of the maximum size fires all rounds, since the headers of the broker do not grow from round
// to round.
func TestLargeSeries(t *testing.T) {
	t.Parallel()
	natstest.BubbleWith(t, server.Options{MaxPayload: 64 << 10}, func(t *testing.T, s *natstest.Server) {
		c := harness.StartBroker(t, s, harness.TimerConfig(t)).NewClient()
		in := c.Subscribe("orders.>")
		start := time.Now()
		headers := []string{"Delay-Cron", "*/10 * * * *", "Delay-Time-Zone", "America/Argentina/ComodRivadavia",
			"Delay-Jitter", "1m", "Delay-Expires", "1h", "Delay-TTL", "10d", "Delay-Owner", "me", "Delay-Rounds", "4"}
		size := 0
		for _, h := range headers {
			size += len(h) + 4
		}
		body := strings.Repeat("x", 64<<10-8<<10-size-64)
		c.Publish(recurring, body, headers...)
		time.Sleep(time.Until(start.Add(time.Hour)))
		if got := in.Arrivals(); len(got) != 4 || got[3].Body != body {
			t.Errorf("%d rounds have arrived", len(got))
		}
		c.CheckNoDead()
		c.CheckNoTimers()
	})
}
