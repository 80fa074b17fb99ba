package engine

import (
	"testing"

	"delaybroker/broker/leader"
	"delaybroker/broker/streams"
)

// TestUnwatchedEndingsCostNothing: where nobody wants to know how messages end, no delivery allocates for it.
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
