package promises

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"delaybroker/broker"
	"delaybroker/broker/deliver"
	"delaybroker/broker/message"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestSlack: with a slack, no message is early, or late by more than the slack, after any number of levels. With a
// short slack, each message arrives exactly at the end of its slack, and slacks end at multiples of their length. So
// all messages that are due in one slack arrive together.
func TestSlack(t *testing.T) {
	t.Parallel()
	for _, slack := range []time.Duration{time.Millisecond, 20 * time.Millisecond, 250 * time.Millisecond} {
		natstest.Subtest(t, slack.String(), func(t *testing.T, s *natstest.Server) {
			cfg := broker.Config{Ladder: harness.Ladder(t, "1s 10s 1m"), Slack: slack}
			c := harness.StartBroker(t, s, cfg).NewClient()
			in := c.Subscribe("orders.>")
			time.Sleep(time.Second) // until the leaders' clocks are known to the nanosecond
			random := rand.New(rand.NewPCG(1, 2))
			const count = 300
			for i := range count {
				subject := "delay.1s.orders.x"
				if i%3 == 0 {
					subject = fmt.Sprintf("delayin.%dms.orders.x", random.IntN(200_000))
				}
				c.Publish(subject, "x")
				time.Sleep(time.Duration(random.IntN(10_000_000)))
			}
			time.Sleep(4 * time.Minute)
			all := in.Arrivals()
			harness.CheckCount(t, all, count)
			batches := make(map[time.Time]bool)
			for _, m := range all {
				due, err := time.Parse(time.RFC3339Nano, m.Header.Get(message.HeaderDue))
				natstest.NoError(t, err)
				want := due.Truncate(slack)
				if want.Before(due) {
					want = want.Add(slack)
				}
				// With a longer slack, a lane with hops does not wait for the end of the slack.
				together := slack <= 20*time.Millisecond
				if m.At.Before(due) || m.At.Sub(due) > slack || together && !m.At.Equal(want) {
					t.Errorf("due %s, arrived %s later, want %s", due.Format(time.StampMicro), m.At.Sub(due), want.Sub(due))
				}
				batches[m.At] = true
			}
			t.Logf("%d messages in %d batches", count, len(batches))
			c.CheckEmpty()
		})
	}
}

// TestSlackBesideRatesPausesAndTimers: with a slack, messages with a rate, paused messages and named timers are never
// early. All messages of one slack, 20 ms, arrive together. The broker keeps rates and pauses.
func TestSlackBesideRatesPausesAndTimers(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		const slack, count, rate = 20 * time.Millisecond, 1000, 100
		cfg := harness.TimerConfig(t)
		cfg.Slack, cfg.Rates = slack, deliver.Rates{{Pattern: "slow.>", Value: rate}}
		harness.StartBroker(t, s, cfg)
		c, o := harness.NewClient(t, s), harness.Operator(t, s)
		plain, slow, timers, paused := c.Subscribe("plain.>"), c.Subscribe("slow.>"), c.Subscribe("timers.>"),
			c.Subscribe("paused.>")
		harness.MustPause(t, o, "paused.>")
		time.Sleep(time.Second)
		for i := range count {
			c.Publish("delay.1s.plain.x", "x")
			if i%10 == 0 {
				c.Publish("delay.1s.slow.x", "x")
				c.Publish("delay.1s.paused.x", "x")
				c.Publish(fmt.Sprintf("delaytimer.k%d.timers.x", i), "x", message.HeaderFor, "1500ms")
			}
			time.Sleep(time.Millisecond)
		}
		time.Sleep(10 * time.Second)
		harness.CheckCount(t, paused.Arrivals(), 0)
		resumed := time.Now()
		harness.MustResume(t, o, "paused.>")
		time.Sleep(time.Minute)
		late := func(in *harness.Inbox, want int, since time.Time, maxLate time.Duration) (batches int) {
			t.Helper()
			all := in.Arrivals()
			harness.CheckCount(t, all, want)
			at := make(map[time.Time]bool)
			for _, m := range all {
				at[m.At] = true
				from := m.Due
				if since.After(from) {
					from = since
				}
				if m.At.Before(from) || m.At.Sub(from) > maxLate {
					t.Errorf("%s arrived %s after %s", m.Subject, m.At.Sub(from), from.Format(time.StampMicro))
				}
			}
			return len(at)
		}
		if got, maxPasses := late(plain, count, time.Time{}, slack), count/int(slack/time.Millisecond)+1; got > maxPasses {
			t.Errorf("%d messages arrived at %d times, want at most %d times", count, got, maxPasses)
		}
		late(timers, count/10, time.Time{}, slack)
		late(paused, count/10, resumed, time.Second) // the broker opens the lane of the pause first
		turns := slow.Arrivals()
		harness.CheckCount(t, turns, count/10)
		for _, m := range turns {
			if m.At.Before(m.Due) {
				t.Errorf("a message with a rate arrived %s early", m.Due.Sub(m.At))
			}
		}
		harness.CheckSpread(t, turns, 20, 20*time.Second/rate-slack)
	})
}
