package levels_test

import (
	"fmt"
	"testing"
	"time"

	"delaybroker/levels"
)

// The default ladder and the rule were chosen by these simulations. doc.go quotes their output:
//
//	go test -v -run TestHops ./levels

// TestHopsOfDefault: the default ladder meets the goals, with the numbers in doc.go.
func TestHopsOfDefault(t *testing.T) {
	l := levels.Default()
	c := newCounter(l, l.Horizon())
	tests := []struct {
		end      time.Duration
		goal     float64
		wantMax  int
		wantMean string
	}{
		{2 * time.Hour, 4, 6, "3.93"},
		{30 * day, 8, 13, "7.90"},
	}
	for _, tt := range tests {
		got := c.count(tt.end)
		if got.mean > tt.goal {
			t.Errorf("0-%s: mean of %.2f hops, want at most %v", levels.FormatDuration(tt.end), got.mean, tt.goal)
		}
		if got, want := fmt.Sprintf("%.2f", got.mean), tt.wantMean; got != want {
			t.Errorf("0-%s: mean of %s hops, doc.go says %s", levels.FormatDuration(tt.end), got, want)
		}
		if got, want := got.max, tt.wantMax; got != want {
			t.Errorf("0-%s: at most %d hops, doc.go says %d", levels.FormatDuration(tt.end), got, want)
		}
	}
}

func TestHopsPerDelay(t *testing.T) {
	tests := []struct{ name, want string }{
		{"rocketmq", "2h: 5.17, at most 10; 30d: 184.67, at most 369; 366d: at most 4401; minutes in 2h: 2.57; hours in " +
			"30d: 180.00"},
		{"short", "2h: 9.60, at most 20; 30d: 27.60, at most 56; 366d: at most 392; minutes in 2h: 6.00; hours in " +
			"30d: 18.50"},
		{"default", "2h: 3.93, at most 6; 30d: 7.90, at most 13; 366d: at most 37; minutes in 2h: 2.28; hours in 30d: 4.47"},
	}
	for _, tt := range tests {
		l := mustParse(t, tt.name)
		c := newCounter(l, l.Horizon())
		in2h, in30d, in366d := c.count(2*time.Hour), c.count(30*day), c.count(366*day+1)
		got := fmt.Sprintf("2h: %.2f, at most %d; 30d: %.2f, at most %d; 366d: at most %d; minutes in 2h: %.2f; hours in "+
			"30d: %.2f",
			in2h.mean, in2h.max, in30d.mean, in30d.max, in366d.max,
			meanOfRound(l, 2*time.Hour, time.Minute), meanOfRound(l, 30*day, time.Hour))
		if want := tt.want; got != want {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, got, want)
		}
		t.Logf("%-8s %2d levels  %s", tt.name, len(l.Levels()), got)
	}
}

// meanOfRound returns the mean number of hops of the multiples of step in [0, end).
func meanOfRound(l levels.Ladder, end, step time.Duration) float64 {
	sum, n := 0, 0
	for d := time.Duration(0); d < end; d += step {
		hops, _ := l.Chain(d)
		sum += len(hops)
		n++
	}
	return float64(sum) / float64(n)
}

// TestHopsPerHorizon compares candidates for the default ladder. Local searches found the candidates: the fourteen
// levels in addition to RocketMQ's were chosen among all whole numbers of seconds, minutes, hours and days (any), among
// about fifty durations (few), or among about thirty round durations, with 15m 12h 1d 7d 14d given (round).
func TestHopsPerHorizon(t *testing.T) {
	const (
		rocketMQ = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h "
		any1s    = rocketMQ + "2s 3s 4s 18s 24s 36s 47s 97m 5h 12h 28h 64h 6d 13d"
		any2s    = rocketMQ + "3s 7s 22s 39s 48s 43m 89m 5h 13h 32h 52h 5d 8d 19d"
		any3s    = rocketMQ + "8s 13s 44s 43m 82m 95m 4h 6h 14h 36h 55h 5d 8d 19d"
		round1s  = rocketMQ + "2s 3s 4s 12s 25s 45s 15m 90m 5h 12h 1d 3d 7d 14d"
		round2s  = rocketMQ + "3s 8s 12s 45s 15m 40m 50m 5h 12h 18h 1d 3d 7d 14d"
		round2s5 = rocketMQ + "3s 7s 12s 45s 15m 40m 50m 5h 12h 18h 1d 3d 7d 14d"
		few2s5   = rocketMQ + "3s 7s 18s 40s 50s 15m 90m 4h 9h 1d 36h 5d 7d 14d"
		min5s    = "5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h 20s 45s 15m 45m 90m 3h 6h 12h 1d 2d 3d 4d 7d 14d"
	)
	tests := []struct {
		horizon          time.Duration
		name, spec, want string
	}{
		{1000 * time.Millisecond, "default", "default", "2h: 4.73; 30d: 8.70"},
		{1000 * time.Millisecond, "round", round1s, "2h: 4.40; 30d: 8.84"},
		{1000 * time.Millisecond, "any", any1s, "2h: 4.29; 30d: 8.46"},
		{2000 * time.Millisecond, "default", "default", "2h: 4.13; 30d: 8.10"},
		{2000 * time.Millisecond, "round", round2s, "2h: 4.05; 30d: 8.12"},
		{2000 * time.Millisecond, "any", any2s, "2h: 3.90; 30d: 7.75"},
		{2500 * time.Millisecond, "default", "default", "2h: 4.03; 30d: 8.00"},
		{2500 * time.Millisecond, "round", round2s5, "2h: 3.96; 30d: 8.03"},
		{2500 * time.Millisecond, "few", few2s5, "2h: 3.91; 30d: 7.95"},
		{3000 * time.Millisecond, "default", "default", "2h: 3.93; 30d: 7.90"},
		{3000 * time.Millisecond, "any", any3s, "2h: 3.79; 30d: 7.43"},
		{5000 * time.Millisecond, "default", "default", "2h: 3.70; 30d: 7.67"},
		{5000 * time.Millisecond, "from 5s up", min5s, "2h: 3.62; 30d: 7.51"},
	}
	for _, tt := range tests {
		l := mustParse(t, tt.spec)
		if got, limit := len(l.Levels()), 32; got > limit {
			t.Errorf("%s: %d levels, want at most %d", tt.name, got, limit)
		}
		c := newCounter(l, tt.horizon)
		got := fmt.Sprintf("2h: %.2f; 30d: %.2f", c.count(2*time.Hour).mean, c.count(30*day).mean)
		if want := tt.want; got != want {
			t.Errorf("horizon %v, %s: got %s, want %s", tt.horizon, tt.name, got, want)
		}
		t.Logf("horizon %4v  %-10s %d levels  %s", tt.horizon, tt.name, len(l.Levels()), got)
	}
}

// TestHopsOfOptimum computes the fewest hops that any rule could reach with the default levels.
func TestHopsOfOptimum(t *testing.T) {
	fewest := fewestHops(levels.Default(), 30*day)
	mean := func(d time.Duration) float64 {
		sum := 0
		for _, hops := range fewest[:d/time.Second] {
			sum += int(hops)
		}
		return float64(sum) / float64(d/time.Second)
	}
	got := fmt.Sprintf("2h: %.2f; 30d: %.2f", mean(2*time.Hour), mean(30*day))
	if want := "2h: 3.93; 30d: 7.89"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	t.Logf("optimum of the default levels  %s", got)
}

// fewestHops returns the fewest hops for each delay of whole seconds in [0, end). It uses one goroutine, and is
// excluded from the race detector, which would take 12 s for its eighty million reads.
//
//go:norace
func fewestHops(l levels.Ladder, end time.Duration) []uint8 {
	ladder := l.Levels()
	fewest := make([]uint8, end/time.Second)
	for s := int(l.Horizon() / time.Second); s < len(fewest); s++ {
		best := uint8(255)
		for _, level := range ladder {
			step := int(level.Delay / time.Second)
			if step > s {
				break
			}
			best = min(best, fewest[s-step]+1)
		}
		fewest[s] = best
	}
	return fewest
}
