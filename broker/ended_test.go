package broker

import (
	"testing"

	"delaybroker/broker/layout"
)

// TestUnwatchedEndingsCostNothing: where nobody wants to know how messages end, no delivery allocates for it.
func TestUnwatchedEndingsCostNothing(t *testing.T) {
	w := &worker{shared: &instance{}, lane: layout.Spec{Stream: "DELAY_1s"}}
	f := &flight{sent: &publish{}}
	if n := testing.AllocsPerRun(1000, func() {
		w.recordDelivered(f, moment{})
		w.recordDead(f, moment{})
	}); n != 0 {
		t.Errorf("a message costs %v allocations, want none", n)
	}
}
