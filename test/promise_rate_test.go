package test

import (
	"fmt"
	"testing"
	"time"

	"delaybroker/broker"
	"delaybroker/broker/deliver"
	"delaybroker/broker/message"
	"delaybroker/test/natstest"
)

// TestRateAfterTheServerWasAway: the server is away for ten seconds, in which 100 messages had their turns at the rate
// of a target. When it is back they come at that rate, in order, before those whose turns come later.
func TestRateAfterTheServerWasAway(t *testing.T) { // not in parallel: see natstest.DropTimers
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		const rate, flood = 10, 200
		startBroker(t, s, broker.Config{Rates: deliver.Rates{{Pattern: "slow.>", Value: rate}}, Log: quiet})
		c := newClient(t, s)
		c.target("SLOW", "slow.>")
		for i := range flood {
			c.publish("delay.1s.slow.x", fmt.Sprintf("%06d", i))
		}
		time.Sleep(5 * time.Second)
		s.Restart(10 * time.Second)
		time.Sleep(2 * time.Minute)
		got := c.arrivals("SLOW")
		checkInOrder(t, got, flood)
		for i := rate; i < len(got); i++ {
			if took := got[i].At.Sub(got[i-rate].At); took < time.Second-time.Millisecond {
				t.Fatalf("%d came within %s, up to number %d", rate+1, took, i)
			}
		}
		c.checkNoDead()
		c.checkEmpty()
	})
}

// TestSilenceOfARatedTargetIsCounted: a target with a rate should acknowledge, and never does. Each message is repeated
// in its turn, so that its silences are counted: it becomes a dead letter after the third.
func TestSilenceOfARatedTargetIsCounted(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		const flood = 20
		startBroker(t, s, broker.Config{Rates: deliver.Rates{{Pattern: "slow.>", Value: 1}}, Attempts: 1, Log: quiet})
		c := newClient(t, s)
		c.silent("slow.>")
		c.many("delay.1s.slow.x", flood, message.HeaderDeliver, "stream")
		time.Sleep(time.Minute)
		if got := len(c.dead()[string(message.Undelivered)]); got != flood {
			t.Errorf("%d dead letters after a minute, want %d", got, flood)
		}
	})
}
