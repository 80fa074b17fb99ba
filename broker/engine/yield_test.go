package engine

import (
	"testing"
	"time"
)

// TestYield: the timers' lane yields to a burst of firings for at most half a second, and again only in the next burst.
func TestYield(t *testing.T) {
	var y yield
	for _, step := range []struct {
		after   time.Duration
		firings int
		want    bool
	}{
		{0, burstFirings - 1, false},
		{time.Second, burstFirings, true},
		{time.Second + maxYield - 1, 100_000, true},
		{time.Second + maxYield, 100_000, false},
		{time.Hour, burstFirings, false},
		{time.Hour + 1, burstFirings - 1, false},
		{time.Hour + 2, burstFirings, true},
		{time.Hour + 2 + maxYield, burstFirings, false},
	} {
		if got := y.on(step.firings, time.Unix(0, 0).Add(step.after)); got != step.want {
			t.Errorf("after %s with %d firings: yields %t, want %t", step.after, step.firings, got, step.want)
		}
	}
}
