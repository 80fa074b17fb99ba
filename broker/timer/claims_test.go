package timer_test

import (
	"testing"

	"delaybroker/broker/timer"
)

// TestClaims: only one goroutine at a time fires a generation.
func TestClaims(t *testing.T) {
	var c timer.Claims
	a, b := new(int), new(int)
	if !c.Take(7, a) || !c.Take(8, b) {
		t.Error("a free generation cannot be claimed")
	}
	if !c.Take(7, a) {
		t.Error("one's own cannot be claimed again")
	}
	if c.Take(7, b) {
		t.Error("a generation is claimed twice")
	}
	if c.Release(7, b); c.Take(7, b) {
		t.Error("a generation is given back by somebody else")
	}
	if c.Release(7, a); !c.Take(7, b) {
		t.Error("a generation that was given back cannot be claimed")
	}
}
