package role

import "testing"

// TestClaims: only one alarm at a time fires a generation.
func TestClaims(t *testing.T) {
	var c claims
	a, b, other := &Alarm{Generation: 7}, &Alarm{Generation: 7}, &Alarm{Generation: 8}
	if !c.Take(a) || !c.Take(other) {
		t.Error("a free generation cannot be claimed")
	}
	if !c.Take(a) {
		t.Error("an alarm was refused its own claim")
	}
	if c.Take(b) {
		t.Error("a generation is claimed twice")
	}
	if c.Release(b); c.Take(b) {
		t.Error("an alarm released the claim of another alarm")
	}
	if c.Release(a); !c.Take(b) {
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
		{"take two", func() { c.Take(a); c.Take(b) }, 2},
		{"take a held claim again", func() { c.Take(a) }, 2},
		{"take the claim of another alarm", func() { c.Take(notB) }, 2},
		{"settle the claim of another alarm", func() { c.Settle(notB) }, 2},
		{"settle", func() { c.Settle(a) }, 1},
		{"settle a settled claim", func() { c.Settle(a) }, 1},
		{"take a settled claim", func() { c.Take(a) }, 1},
		{"release the settled claim of another alarm", func() { c.Release(notA) }, 1},
		{"release a settled claim", func() { c.Release(a) }, 1},
		{"release the claim of another alarm", func() { c.Release(notB) }, 1},
		{"release", func() { c.Release(b) }, 0},
		{"settle a released claim", func() { c.Settle(b) }, 0},
	} {
		if step.do(); c.Firings() != step.want {
			t.Errorf("%s: %d firings, want %d", step.name, c.Firings(), step.want)
		}
	}
}
