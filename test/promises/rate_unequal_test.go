package promises

import (
	"context"
	"fmt"
	"testing"
	"time"

	"delaybroker/broker"
	"delaybroker/broker/deliver"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestRateWithUnequalInstances: during a rollout of settings, two instances disagree about the level that reserves the
// send times of a target. A message moves there once, and not back and forth.
func TestRateWithUnequalInstances(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		const targets, rate = 30, 10
		rates := deliver.Rates{{Pattern: "slow.>", Value: rate}}
		for _, byKey := range []deliver.Rates{nil, rates} {
			harness.StartBroker(t, s, broker.Config{
				MaxOwners: 2, Log: harness.Quiet, Rates: rates, RatesByKey: byKey,
			})
		}
		time.Sleep(12 * time.Second) // they share the lanes
		c := harness.NewClient(t, s)
		in := c.Subscribe("slow.>")
		for i := range targets {
			c.Publish(fmt.Sprintf("delay.10s.slow.t%d", i), "", "Delay-Rate-Key", fmt.Sprint("k", i))
		}
		time.Sleep(15 * time.Second)
		if got := len(in.All()); got != targets {
			t.Errorf("%d came, want %d", got, targets)
		}
		var stored uint64
		for info := range c.JS.ListStreams(context.Background()).Info() {
			stored += info.State.LastSeq
		}
		if most := uint64(4 * targets); stored > most {
			t.Errorf("%d messages were stored on the way of %d, want %d at the most", stored, targets, most)
		}
	})
}
