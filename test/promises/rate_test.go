package promises

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"delaybroker/broker"
	"delaybroker/broker/deliver"
	"delaybroker/broker/message"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestRateAfterServerOutage: the server is down for ten seconds, in which 100 messages had their send times at the rate
// of a target. Afterwards they arrive at the rate, in order, before the messages with later send times.
func TestRateAfterServerOutage(t *testing.T) { // not in parallel: see natstest.DropTimers
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		const rate, flood = 10, 200
		harness.StartBroker(t, s, broker.Config{Rates: deliver.Rates{{Pattern: "slow.>", Value: rate}}, Log: harness.NoLog})
		c := harness.NewClient(t, s)
		c.Target("SLOW", "slow.>")
		for i := range flood {
			c.Publish("delay.1s.slow.x", fmt.Sprintf("%06d", i))
		}
		time.Sleep(5 * time.Second)
		s.Restart(10 * time.Second)
		time.Sleep(2 * time.Minute)
		got := c.Arrivals("SLOW")
		harness.CheckInOrder(t, got, flood)
		harness.CheckSpread(t, got, rate, time.Second-time.Millisecond)
		c.CheckEmpty()
	})
}

// TestSilenceOfRatedTargetCounts: a target with a rate should acknowledge, and never does. Three sends without an
// answer count as one refusal, which is here the last attempt. The message becomes a dead letter.
func TestSilenceOfRatedTargetCounts(t *testing.T) {
	t.Parallel()
	const flood = 20
	cfg := broker.Config{Rates: deliver.Rates{{Pattern: "slow.>", Value: 1}}, Attempts: 1, Log: harness.NoLog}
	harness.Bubble(t, cfg, func(t *testing.T, c *harness.Client) {
		c.SilentTarget("slow.>")
		c.PublishMany("delay.1s.slow.x", flood, message.HeaderDeliver, "stream")
		time.Sleep(time.Minute)
		harness.CheckCount(t, c.DeadLetters()[string(message.Undelivered)], flood)
	})
}

// TestRateAfterKills: the broker is killed several times while 1,200 messages wait for their send times. The next
// broker moves some messages a second time, and these duplicates take send times. The duplicates are few, so after each
// kill the broker soon uses the full rate, and the last message arrives almost as early as possible.
func TestRateAfterKills(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		const rate, flood, kills, away = 20, 1200, 8, 300 * time.Millisecond
		cfg := broker.Config{
			Ladder: harness.Ladder(t, "1s 3s 5s 7s 1m"), Instance: "one", Log: harness.NoLog,
			Rates: deliver.Rates{{Pattern: "slow.>", Value: rate}},
		}
		c := harness.NewClient(t, s)
		c.Target("SLOW", "slow.>")
		sent := c.Subscribe("slow.>")
		b := harness.StartBroker(t, s, cfg)
		for i := range flood {
			subject := []string{"delay.3s.slow.x", "delayin.3100ms.slow.x", "delay.5s.slow.x", "delay.7s.slow.x"}[i%4]
			c.Publish(subject, fmt.Sprintf("%06d", i))
		}
		for range kills {
			time.Sleep(6 * time.Second)
			b.Crash()
			time.Sleep(away)
			b = harness.StartBroker(t, s, cfg)
		}
		time.Sleep(2 * time.Minute)
		got := c.Arrivals("SLOW")
		harness.CheckCount(t, got, flood)
		const turns = flood * time.Second / rate
		if took := got[flood-1].At.Sub(got[0].At); took > turns+kills*(away+time.Second) {
			t.Errorf("the deliveries took %s, want %s, the sum of the intervals, and little more than a second for each kill",
				took, turns)
		}
		all := sent.Arrivals()
		if duplicates := len(all) - flood; duplicates > kills*rate {
			t.Errorf("%d duplicates were sent, want at most one second of duplicates for each of %d kills", duplicates, kills)
		}
		harness.CheckSpread(t, all, rate+1, time.Second-time.Millisecond)
		c.CheckEmpty()
	})
}

// TestPausedAgainAtItsRate: an operator pauses and resumes a target with a rate several times, for different durations,
// while most of its messages wait for their send times. The messages of all lanes arrive in the order of due times, and
// outside of the pauses exactly one interval of the rate apart. Messages that are published during the test arrive
// after them.
func TestPausedAgainAtItsRate(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	const rate, flood = 20, 400
	for name, subjects := range map[string][]string{
		"one level":   {"delay.1s.slow.x"},
		"three lanes": {"delay.1s.slow.x", "delayin.1s.slow.x", "delaytimer.k%d.slow.x"},
	} {
		for resumptions := 1; resumptions <= 4; resumptions++ {
			natstest.Subtest(t, fmt.Sprintf("%s, resumed %d times", name, resumptions), func(t *testing.T, s *natstest.Server) {
				harness.StartBroker(t, s, broker.Config{Timers: true, Log: harness.NoLog,
					Rates: deliver.Rates{{Pattern: "slow.>", Value: rate}}})
				c, o := harness.NewClient(t, s), harness.Operator(t, s)
				c.Target("SLOW", "slow.>")
				count := 0
				publish := func() {
					subject, headers := subjects[count%len(subjects)], []string(nil)
					if strings.HasPrefix(subject, "delaytimer.") {
						subject, headers = fmt.Sprintf(subject, count), []string{message.HeaderFor, "1s"}
					}
					c.Publish(subject, fmt.Sprintf("%06d", count), headers...)
					count++
					time.Sleep(2 * time.Millisecond)
				}
				for range flood {
					publish()
				}
				for i := range resumptions {
					harness.MustPause(t, o, "slow.>")
					publish()
					before := harness.Pending(c, "SLOW")
					time.Sleep([]time.Duration{10 * time.Second, 3 * time.Second, time.Second / 2, 7 * time.Second}[i])
					if got := harness.Pending(c, "SLOW"); got != before {
						t.Errorf("%d messages arrived while paused", got-before)
					}
					harness.MustResume(t, o, "slow.>")
					publish()
					time.Sleep(time.Duration(4-i) * time.Second)
				}
				time.Sleep(time.Minute)
				got := c.Arrivals("SLOW")
				harness.CheckInOrder(t, got, count)
				waits := 0
				for i := 1; i < len(got); i++ {
					switch apart := got[i].At.Sub(got[i-1].At); {
					case apart < time.Second/rate:
						t.Fatalf("message %d arrived %s after the one before it", i, apart)
					case apart > time.Second/rate:
						waits++
					}
				}
				if waits != resumptions {
					t.Errorf("%d messages arrived more than an interval after the previous message, want one for each of %d pauses",
						waits, resumptions)
				}
				c.CheckEmptyBut("DELAY_TIMERS")
			})
		}
	}
}
