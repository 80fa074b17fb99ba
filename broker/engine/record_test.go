package engine

import (
	"testing"

	"delaybroker/broker/leader"
	"delaybroker/broker/streams"
)

// TestUnrecordedEndsAllocateNothing: without a journal and without traces, recording a delivery or a dead letter
// allocates nothing.
func TestUnrecordedEndsAllocateNothing(t *testing.T) {
	w := &worker{engine: new(Engine), lane: streams.Spec{Stream: "DELAY_1s"}}
	f := &flight{sent: &publish{}}
	if n := testing.AllocsPerRun(1000, func() {
		w.recordDelivered(f, leader.Time{}, 0)
		w.recordDead(f, leader.Time{})
	}); n != 0 {
		t.Errorf("a message costs %v allocations, want none", n)
	}
}
