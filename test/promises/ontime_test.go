package promises

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"delaybroker/broker"
	"delaybroker/broker/message"
	"delaybroker/levels"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestNeverEarlyOnTime publishes one message to every level. Each message arrives exactly at its due time.
func TestNeverEarlyOnTime(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	all := levels.Default().Levels()
	longer := func(than time.Duration) int {
		return slices.IndexFunc(all, func(l levels.Level) bool { return l.Delay > than })
	}
	// Idle lanes cost processor time, under fake time too. So separate brokers serve the levels of hours and of days, with
	// one retry lane. No broker runs while no message is due for long.
	hours, days := longer(2*time.Hour), longer(24*time.Hour)
	for _, part := range [][]levels.Level{all[:hours], all[hours:days], all[days:]} {
		natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
			var names []string
			for _, l := range part {
				names = append(names, l.Name)
			}
			cfg := broker.Config{
				Ladder: harness.Ladder(t, strings.Join(names, " ")), RetryLadder: harness.Ladder(t, "30s"),
			}
			b, c := harness.Start(t, s, cfg)
			in := c.Subscribe("orders.>")
			time.Sleep(123_456_789) // the due time need not be a full second
			accepted := time.Now()
			for _, l := range part {
				c.Publish("delay."+l.Name+".orders.expire", l.Name)
			}
			for i, l := range part {
				if wait := time.Until(accepted.Add(l.Delay)); wait > 40*time.Minute {
					b.Stop()
					time.Sleep(wait - 10*time.Minute)
					b = harness.StartBroker(t, s, cfg)
				}
				harness.CheckExactly(t, in, accepted.Add(l.Delay), i)
			}
			time.Sleep(10 * time.Minute)
			harness.CheckCount(t, in.Arrivals(), len(part))
			c.CheckEmpty()
		})
	}
}

// TestChains: messages that pass several levels arrive exactly at their due times. A message may pass one level several
// times within its duplicate window. Each hop needs its own id; otherwise the server answers "duplicate" to the second
// one, and the message is lost.
func TestChains(t *testing.T) {
	t.Parallel()
	for subject, ladder := range map[string]string{
		"delay.5h": harness.Levels, "delayin.1h59m59s999ms": harness.Levels, "delayin.1500ms": harness.Levels,
		"delay.90s": harness.Levels, "delayin.50ms": harness.Levels,
		// Ladders with fewer idle lanes cost less processor time. These messages pass the longest level 24 times, and twice.
		"delay.1d":     "1s 1h",
		"delayin.150m": "1s 10m 1h",
		"delayin.20s":  "1s",
	} {
		natstest.Subtest(t, subject, func(t *testing.T, s *natstest.Server) {
			harness.StartBroker(t, s,
				broker.Config{Ladder: harness.Ladder(t, ladder), RetryLadder: harness.Ladder(t, "30s")})
			c := harness.NewClient(t, s)
			in := c.Subscribe("orders.>")
			c.Publish(subject+".orders.expire", "x")
			accepted := time.Now()
			_, token, _ := strings.Cut(subject, ".")
			wait, err := levels.ParseDuration(token)
			natstest.NoError(t, err)
			harness.CheckExactly(t, in, accepted.Add(wait), 0)
			time.Sleep(time.Minute)
			harness.CheckCount(t, in.Arrivals(), 1)
			c.CheckEmpty()
		})
	}
}

// TestAbsoluteTimes uses points in time instead of durations: RFC 3339, unix seconds and unix milliseconds.
func TestAbsoluteTimes(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	natstest.BubbleAt(t, start, server.Options{}, func(t *testing.T, s *natstest.Server) {
		_, c := harness.Start(t, s, broker.Config{})
		in := c.Subscribe("orders.>")
		at := func(d time.Duration) time.Time { return start.Add(d) }
		c.Publish("delayat."+at(-time.Hour).UTC().Format(time.RFC3339)+".orders.past", "past")
		synctest.Wait()
		if got := in.Arrivals(); len(got) != 1 || !got[0].At.Equal(start) {
			t.Errorf("a time in the past gave %v, want one message immediately", got)
		}
		c.Publish("delayat."+at(10*time.Second).UTC().Format(time.RFC3339)+".orders.a", "a")
		c.Publish(fmt.Sprintf("delayat.%d.orders.b", at(20*time.Second).Unix()), "b")
		c.Publish(fmt.Sprintf("delayat.%d.orders.c", at(30*time.Second+7*time.Millisecond).UnixMilli()), "c")
		c.Publish("delay.10s.orders.d", "d", message.HeaderUntil,
			at(40*time.Second+123456789).UTC().Format(time.RFC3339Nano))
		c.Publish("delay.15m.orders.e", "e", "delay-until", fmt.Sprint(at(16*time.Minute).UnixMilli()))
		harness.CheckExactly(t, in, at(10*time.Second), 1)
		harness.CheckExactly(t, in, at(20*time.Second), 2)
		harness.CheckExactly(t, in, at(30*time.Second+7*time.Millisecond), 3)
		harness.CheckExactly(t, in, at(40*time.Second+123456789), 4)
		harness.CheckExactly(t, in, at(16*time.Minute), 5)
		c.CheckNoDead()
	})
}

// TestRandomDelays sends 1,000 messages with random delays. Each arrives once, at its due time, in the order of due
// times.
func TestRandomDelays(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	const count = 1000
	harness.Bubble(t, broker.Config{}, func(t *testing.T, c *harness.Client) {
		c.Target("ORDERS", "orders.>")
		rng := rand.New(rand.NewPCG(1, 2))
		due := make(map[string]time.Time, count)
		for i := range count {
			wait := time.Duration(rng.ExpFloat64()*float64(10*time.Minute)).Truncate(time.Millisecond) +
				time.Millisecond
			body := fmt.Sprint(i)
			c.Publish("delayin."+levels.FormatDuration(wait)+".orders.expire", body)
			due[body] = time.Now().Add(wait)
			time.Sleep(time.Duration(rng.IntN(3)) * time.Millisecond)
		}
		var latest time.Time
		for _, at := range due {
			if at.After(latest) {
				latest = at
			}
		}
		time.Sleep(time.Until(latest.Add(time.Minute)))
		got := c.Arrivals("ORDERS")
		harness.CheckCount(t, got, count)
		seen := make(map[string]bool)
		for i, a := range got {
			if seen[a.Body] {
				t.Errorf("%s arrived twice", a.Body)
			}
			seen[a.Body] = true
			if want := due[a.Body]; !a.At.Equal(want) || !a.Due.Equal(want) {
				t.Fatalf("%s arrived at %s with the due time %s, want %s (%s)", a.Body, a.At, a.Due, want,
					a.At.Sub(want))
			}
			if i > 0 && a.Due.Before(got[i-1].Due) {
				t.Errorf("%s arrived after a message that was due later", a.Body)
			}
		}
		c.CheckEmpty()
	})
}
