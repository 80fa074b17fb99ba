package levels_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"delaybroker/levels"
)

func TestNext(t *testing.T) {
	l := mustParse(t, "1s 5s 1m")
	tests := []struct {
		remaining time.Duration
		want      string // "" is the wheel
	}{
		{math.MinInt64, ""},
		{-1, ""},
		{0, ""},
		{time.Second, ""}, // a level, but below the horizon
		{3*time.Second - 1, ""},
		{3 * time.Second, "1s"},
		{5*time.Second - 1, "1s"},
		{5 * time.Second, "5s"},
		{5*time.Second + 1, "5s"},
		{time.Minute - 1, "5s"},
		{time.Minute, "1m"},
		{math.MaxInt64, "1m"},
	}
	for _, tt := range tests {
		got, ok := l.Next(tt.remaining)
		if want := tt.want; got.Name != want || ok != (want != "") {
			t.Errorf("Next(%v) = %q, %v; want %q", tt.remaining, got.Name, ok, want)
		}
	}
}

// ladders returns the presets, extreme ladders and random ladders.
func ladders(t *testing.T, rng *rand.Rand) []levels.Ladder {
	specs := []string{"default", "rocketmq", "short", "1s", "1500ms", "366d", "7s 11s 13s", "1m 1h"}
	for range 40 {
		var names []string
		for range 1 + rng.IntN(levels.MaxLevels) {
			ms := 1000 << rng.IntN(24)
			names = append(names, fmt.Sprintf("%dms", ms+rng.IntN(ms)))
		}
		slices.Sort(names)
		specs = append(specs, strings.Join(slices.Compact(names), " "))
	}
	var ls []levels.Ladder
	for _, spec := range specs {
		ls = append(ls, mustParse(t, spec))
	}
	return ls
}

func TestNextIsLongestFit(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, l := range ladders(t, rng) {
		ladder := l.Levels()
		check := func(remaining time.Duration) {
			t.Helper()
			var want levels.Level
			for _, level := range ladder {
				if level.Delay <= remaining && remaining >= l.Horizon() {
					want = level
				}
			}
			got, ok := l.Next(remaining)
			if got != want || ok != (remaining >= l.Horizon()) {
				t.Fatalf("ladder %q: Next(%d) = %v, %v; want %v", l, remaining, got, ok, want)
			}
		}
		for _, level := range ladder {
			check(level.Delay - 1)
			check(level.Delay)
			check(level.Delay + 1)
		}
		check(l.Horizon() - 1)
		check(l.Horizon())
		for range 200 {
			check(time.Duration(rng.Int64N(int64(400 * day))))
		}
	}
}

func TestChainAddsUp(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, l := range ladders(t, rng) {
		ladder := l.Levels()
		longest := ladder[len(ladder)-1].Delay
		for range 200 {
			d := time.Duration(rng.Int64N(int64(20 * longest)))
			hops, rest := l.Chain(d)
			if rest < 0 || rest >= l.Horizon() {
				t.Fatalf("ladder %q: Chain(%v) leaves %v to the wheel, want less than %v", l, d, rest, l.Horizon())
			}
			got := rest
			for i, level := range hops {
				got += level.Delay
				if i > 0 && level.Delay > hops[i-1].Delay {
					t.Fatalf("ladder %q: Chain(%v) goes up from %s to %s", l, d, hops[i-1].Name, level.Name)
				}
			}
			if want := d; got != want {
				t.Fatalf("ladder %q: Chain(%v) adds up to %v", l, want, got)
			}
		}
	}
}

func TestChainOfNegativeDelay(t *testing.T) {
	hops, rest := levels.Default().Chain(-time.Minute)
	if len(hops) != 0 || rest != -time.Minute {
		t.Errorf("Chain(-1m) = %v, %v; want no hops and the same rest", hops, rest)
	}
}

func TestNextDoesNotAllocate(t *testing.T) {
	l := levels.Default()
	if got := testing.AllocsPerRun(100, func() { l.Next(time.Hour) }); got != 0 {
		t.Errorf("%v allocations, want 0", got)
	}
}

func BenchmarkNext(b *testing.B) {
	l := levels.Default()
	remaining := 30 * day
	for b.Loop() {
		level, ok := l.Next(remaining)
		if remaining -= level.Delay; !ok {
			remaining = 30*day - time.Millisecond
		}
	}
}
