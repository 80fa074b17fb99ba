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
		t.Error("another goroutine returned a generation")
	}
	if c.Release(7, a); !c.Take(7, b) {
		t.Error("a generation that was given back cannot be claimed")
	}
}

// TestUnderway: a claim is underway until its owner settles or releases it.
func TestUnderway(t *testing.T) {
	var c timer.Claims
	a, b := new(int), new(int)
	for _, step := range []struct {
		name string
		do   func()
		want int
	}{
		{"take two", func() { c.Take(7, a); c.Take(8, b) }, 2},
		{"take one's own", func() { c.Take(7, a) }, 2},
		{"take another's", func() { c.Take(8, a) }, 2},
		{"settle another's", func() { c.Settle(8, a) }, 2},
		{"settle", func() { c.Settle(7, a) }, 1},
		{"settle once more", func() { c.Settle(7, a) }, 1},
		{"take a settled one", func() { c.Take(7, a) }, 1},
		{"release a settled one", func() { c.Release(7, a) }, 1},
		{"release another's", func() { c.Release(8, a) }, 1},
		{"release", func() { c.Release(8, b) }, 0},
		{"settle a released one", func() { c.Settle(8, b) }, 0},
	} {
		if step.do(); c.Underway() != step.want {
			t.Errorf("%s: %d are underway, want %d", step.name, c.Underway(), step.want)
		}
	}
}
