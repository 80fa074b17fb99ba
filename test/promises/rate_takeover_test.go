package promises

import (
	"fmt"
	"testing"
	"time"

	"delaybroker/broker"
	"delaybroker/broker/deliver"
	"delaybroker/broker/message"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// startRated starts instances with a rate for each target below slow, and for each key of targets
// below keyed.
func startRated(t *testing.T, s *natstest.Server, instances, rate int) (*harness.Client, []*harness.Instance) {
	t.Helper()
	all := harness.StartBrokers(t, s, instances, broker.Config{
		Leaser: harness.Together, Log: harness.NoLog, Timers: true,
		Rates:      deliver.Rates{{Pattern: "slow.>", Value: rate}},
		RatesByKey: deliver.Rates{{Pattern: "keyed.>", Value: rate}},
	})
	time.Sleep(10 * time.Second)
	return harness.NewClient(t, s), all
}

// checkRate expects each message once, and all messages at exactly their rate.
func checkRate(t *testing.T, what string, all []harness.Arrival, count, rate int) {
	t.Helper()
	ids := make(map[string]bool)
	for _, a := range all {
		ids[a.ID] = true
	}
	if len(all) != count || len(ids) != count {
		t.Fatalf("%s: %d messages arrived %d times, want %d once each", what, len(ids), len(all), count)
	}
	interval := time.Second / time.Duration(rate)
	for i := 1; i < len(all); i++ {
		if apart := all[i].At.Sub(all[i-1].At); apart != interval {
			t.Fatalf("%s: message %d arrived %s after the previous message, want %s", what, i, apart, interval)
		}
	}
}

// TestRateOfAllLanes: a target gets exactly its rate, whether its messages are in several lanes, or all in one lane.
func TestRateOfAllLanes(t *testing.T) {
	t.Parallel()
	for name, lanes := range map[string][]string{
		"three lanes": {"delay.10s", "delay.20s", "delay.30s"}, "one lane": {"delay.30s"}, "a short lane": {"delay.3s"},
		"the intake": {"delayin.1100ms"}, "named timers": {"delaytimer"},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "one lane" {
				natstest.SkipShort(t)
			}
			t.Parallel()
			natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
				const flood, rate = 300, 20
				c, _ := startRated(t, s, 3, rate)
				in := make(map[string]*harness.Inbox)
				for _, target := range []string{"slow.a", "slow.b", "slow.c", "slow.d"} {
					in[target] = c.Subscribe(target)
					for _, lane := range lanes {
						if lane != "delaytimer" {
							c.PublishMany(lane+"."+target, flood)
							continue
						}
						for i := range flood {
							c.Publish(fmt.Sprintf("delaytimer.k%d.%s", i, target), "", message.HeaderFor, "20s")
						}
					}
				}
				time.Sleep(2 * time.Minute) // in three lanes, a target has 900 messages: 45 s at its rate
				for target, in := range in {
					checkRate(t, target, in.Arrivals(), flood*len(lanes), rate)
				}
				c.CheckEmptyBut("DELAY_TIMERS")
			})
		})
	}
}

// TestRateByKey: the messages of a tenant arrive at the tenant's rate, with any targets. They do not wait for another
// tenant's messages.
func TestRateByKey(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		const flood, rate = 300, 10
		c, _ := startRated(t, s, 2, rate)
		in := c.Subscribe("keyed.>")
		for i := range flood {
			for _, tenant := range []string{"one", "two", "three"} {
				subject := []string{"delay.10s.keyed.a", "delay.20s.keyed.b"}[i%2]
				c.Publish(subject, tenant, "Delay-Rate-Key", tenant)
			}
		}
		c.PublishMany("delay.10s.keyed.c", flood) // a message without a key has no rate
		time.Sleep(2 * time.Minute)
		by := make(map[string][]harness.Arrival)
		for _, a := range in.Arrivals() {
			if a.Header.Get("Delay-Rate-Key") != "" {
				t.Errorf("%s arrived with Delay-Rate-Key", a.Subject)
			}
			if a.Subject == "keyed.c" {
				by["none"] = append(by["none"], a)
			} else {
				by[a.Body] = append(by[a.Body], a)
			}
		}
		for _, tenant := range []string{"one", "two", "three"} {
			checkRate(t, tenant, by[tenant], flood, rate)
		}
		if got := by["none"]; len(got) != flood || got[flood-1].At.Sub(got[0].At) > time.Second {
			t.Errorf("without a key %d arrived, want all %d at the due time", len(got), flood)
		}
		for _, key := range []string{"", "a b", "\x7f", fmt.Sprintf("%065d", 0)} {
			c.Publish("delay.1s.keyed.a", "bad", "Delay-Rate-Key", key)
		}
		time.Sleep(5 * time.Second)
		harness.CheckCount(t, c.DeadLetters()[string(message.BadOption)], 4)
	})
}

// TestRateAtTakeOver: the active one of three instances stops, the next one crashes, and a new one joins, while
// messages wait for their send times. Each new active instance counts anew, so in the second of a take-over a target
// may get up to its rate in addition. At all other times it gets exactly its rate.
func TestRateAtTakeOver(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		const flood, rate = 1500, 20
		c, all := startRated(t, s, 3, rate)
		in := c.Subscribe("slow.>")
		for i := range flood {
			c.Publish(fmt.Sprintf("delay.%s.slow.x", []string{"10s", "20s", "30s"}[i%3]), "")
		}
		stop := func(end func(*harness.Instance)) {
			time.Sleep(13 * time.Second)
			end(all[harness.Active(t, all...)])
		}
		stop((*harness.Instance).Stop)
		stop((*harness.Instance).Crash)
		time.Sleep(13 * time.Second)
		startRated(t, s, 1, rate)
		time.Sleep(2 * time.Minute)
		got := in.Arrivals()
		ids := make(map[string]bool)
		for _, a := range got {
			ids[a.ID] = true
		}
		if len(ids) != flood || len(got) > flood+2*rate {
			t.Errorf("%d messages arrived %d times, want %d, and few duplicates", len(ids), len(got), flood)
		}
		harness.CheckSpread(t, got, 2*rate+1, time.Second)
		if took := got[len(got)-1].At.Sub(got[0].At); took > (flood/rate+10)*time.Second {
			t.Errorf("the deliveries took %s, want little more than %ds, the sum of the intervals", took, flood/rate)
		}
		c.CheckEmpty()
	})
}
