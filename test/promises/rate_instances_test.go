package promises

import (
	"context"
	"fmt"
	"testing"
	"time"

	"delaybroker/broker"
	"delaybroker/broker/deliver"
	"delaybroker/broker/message"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// startRated starts instances that share the lanes, with a rate for each target below slow, and for each key of targets
// below keyed.
func startRated(t *testing.T, s *natstest.Server, instances, rate int) (*harness.Client, []*harness.Instance) {
	t.Helper()
	all := harness.StartBrokers(t, s, instances, broker.Config{
		MaxOwners: 3, Log: harness.NoLog, Timers: true,
		Rates:      deliver.Rates{{Pattern: "slow.>", Value: rate}},
		RatesByKey: deliver.Rates{{Pattern: "keyed.>", Value: rate}},
	})
	time.Sleep(12 * time.Second) // they share the lanes
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

// TestRateWithInstances: three instances together send to a target at exactly its rate. Its messages are in lanes of
// all instances, or all in one lane.
func TestRateWithInstances(t *testing.T) {
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

// TestRateWhileInstancesChange: one of three instances stops, another one crashes, and a new one joins, while messages
// wait for their send times. A target gets at most a quarter more than its rate.
func TestRateWhileInstancesChange(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		const flood, rate = 1500, 20
		c, all := startRated(t, s, 3, rate)
		in := c.Subscribe("slow.>")
		for i := range flood {
			c.Publish(fmt.Sprintf("delay.%s.slow.x", []string{"10s", "20s", "30s"}[i%3]), "")
		}
		time.Sleep(13 * time.Second)
		all[0].Stop()
		time.Sleep(13 * time.Second)
		all[1].Crash()
		time.Sleep(13 * time.Second)
		startRated(t, s, 1, rate)
		time.Sleep(2 * time.Minute)
		got := in.Arrivals()
		ids := make(map[string]bool)
		for _, a := range got {
			ids[a.ID] = true
		}
		if len(ids) != flood || len(got) > flood+rate {
			t.Errorf("%d messages arrived %d times, want %d, and few duplicates", len(ids), len(got), flood)
		}
		// Messages that are up to 250 ms late do not delay later ones, so a second may have a quarter more.
		harness.CheckSpread(t, got, rate+rate/4+1, time.Second)
		if took := got[len(got)-1].At.Sub(got[0].At); took > (flood/rate+10)*time.Second {
			t.Errorf("the deliveries took %s, want little more than %ds, the sum of the intervals", took, flood/rate)
		}
		c.CheckEmpty()
	})
}

// TestRateWithUnequalInstances: during a rollout of settings, two instances disagree about the level that reserves the
// send times of a target. A message moves to that level once, and not repeatedly.
func TestRateWithUnequalInstances(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		const targets, rate = 30, 10
		rates := deliver.Rates{{Pattern: "slow.>", Value: rate}}
		for _, byKey := range []deliver.Rates{nil, rates} {
			harness.StartBroker(t, s, broker.Config{
				MaxOwners: 2, Log: harness.NoLog, Rates: rates, RatesByKey: byKey,
			})
		}
		time.Sleep(12 * time.Second) // they share the lanes
		c := harness.NewClient(t, s)
		in := c.Subscribe("slow.>")
		for i := range targets {
			c.Publish(fmt.Sprintf("delay.10s.slow.t%d", i), "", "Delay-Rate-Key", fmt.Sprint("k", i))
		}
		time.Sleep(15 * time.Second)
		harness.CheckCount(t, in.Arrivals(), targets)
		var stored uint64
		for info := range c.JS.ListStreams(context.Background()).Info() {
			stored += info.State.LastSeq
		}
		if maxStored := uint64(4 * targets); stored > maxStored {
			t.Errorf("%[2]d messages were stored %[1]d times on their way, want at most %[3]d", stored, targets, maxStored)
		}
	})
}
