package engine

import (
	"testing"

	"delaybroker/broker/leader"
	"delaybroker/broker/streams"
)

// TestUnwatchedEndingsCostNothing: if neither journal nor traces are on, a delivery allocates nothing for them.
func TestUnwatchedEndingsCostNothing(t *testing.T) {
	w := &worker{engine: new(Engine), lane: streams.Spec{Stream: "DELAY_1s"}}
	f := &flight{sent: &publish{}}
	if n := testing.AllocsPerRun(1000, func() {
		w.recordDelivered(f, leader.Time{}, 0)
		w.recordDead(f, leader.Time{})
	}); n != 0 {
		t.Errorf("a message costs %v allocations, want none", n)
	}
}
