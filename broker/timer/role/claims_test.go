package role

import "testing"

// TestClaims: only one alarm at a time fires a generation.
func TestClaims(t *testing.T) {
	var c claims
	a, b, other := &Alarm{Generation: 7}, &Alarm{Generation: 7}, &Alarm{Generation: 8}
	if !c.take(a) || !c.take(other) {
		t.Error("a free generation cannot be claimed")
	}
	if !c.take(a) {
		t.Error("an alarm was refused its own claim")
	}
	if c.take(b) {
		t.Error("a generation is claimed twice")
	}
	if c.release(b); c.take(b) {
		t.Error("an alarm released the claim of another alarm")
	}
	if c.release(a); !c.take(b) {
		t.Error("a released generation cannot be claimed")
	}
}

// TestFirings: Firings counts a claim until its alarm settles or releases it.
func TestFirings(t *testing.T) {
	var c claims
	a, b := &Alarm{Generation: 7}, &Alarm{Generation: 8}
	notA, notB := &Alarm{Generation: 7}, &Alarm{Generation: 8}
	for _, step := range []struct {
		name string
		do   func()
		want int
	}{
		{"take two", func() { c.take(a); c.take(b) }, 2},
		{"take a held claim again", func() { c.take(a) }, 2},
		{"take the claim of another alarm", func() { c.take(notB) }, 2},
		{"settle the claim of another alarm", func() { c.settle(notB) }, 2},
		{"settle", func() { c.settle(a) }, 1},
		{"settle a settled claim", func() { c.settle(a) }, 1},
		{"take a settled claim", func() { c.take(a) }, 1},
		{"release the settled claim of another alarm", func() { c.release(notA) }, 1},
		{"release a settled claim", func() { c.release(a) }, 1},
		{"release the claim of another alarm", func() { c.release(notB) }, 1},
		{"release", func() { c.release(b) }, 0},
		{"settle a released claim", func() { c.settle(b) }, 0},
	} {
		if step.do(); c.Firings() != step.want {
			t.Errorf("%s: %d firings, want %d", step.name, c.Firings(), step.want)
		}
	}
}
