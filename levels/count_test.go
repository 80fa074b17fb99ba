package levels_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"delaybroker/levels"
)

// A hopCount is the mean and the maximum of the hops of all delays in [0, end).
type hopCount struct {
	mean float64
	max  int
	end  time.Duration
}

// A counter counts hops exactly, for all delays and not only for whole seconds. Its horizon may be any that is not
// shorter than the shortest level.
type counter struct {
	levels  []levels.Level
	horizon time.Duration
	cache   map[time.Duration]hopCount // by end
}

func newCounter(l levels.Ladder, horizon time.Duration) counter {
	return counter{l.Levels(), horizon, make(map[time.Duration]hopCount)}
}

// count counts the hops of all delays in [0, end). It splits this range at the longest level that is shorter than end,
// or at the horizon if the horizon is longer. A delay above this point has one hop more than the remaining time after
// that level.
func (c counter) count(end time.Duration) hopCount {
	if end <= c.horizon {
		return hopCount{end: end}
	}
	if n, ok := c.cache[end]; ok {
		return n
	}
	longest := c.levels[0].Delay
	for _, level := range c.levels {
		if level.Delay < end {
			longest = level.Delay
		}
	}
	split := max(longest, c.horizon)
	lower := c.count(split)
	rest := c.count(end - longest) // includes times below split-longest, which are below the horizon and have no hops
	sum := lower.mean*float64(split) + float64(end-split) + rest.mean*float64(rest.end)
	n := hopCount{sum / float64(end), max(lower.max, 1+rest.max), end}
	c.cache[end] = n
	return n
}

// TestCounterIsChain: the counter has the same results as Chain.
func TestCounterIsChain(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for _, spec := range []string{"default", "rocketmq", "short", "2s 1h", "7s 11s 13s", "1m 1h"} {
		l := mustParse(t, spec)
		c := newCounter(l, l.Horizon())
		sum, maxHops := 0, 0
		for s := time.Duration(0); s < 3600; s++ {
			// All delays in one second have the same hops, because levels and horizon are whole seconds.
			hops, _ := l.Chain(s*time.Second + time.Duration(rng.Int64N(int64(time.Second))))
			sum += len(hops)
			maxHops = max(maxHops, len(hops))
			want := hopCount{float64(sum) / float64(s+1), maxHops, (s + 1) * time.Second}
			if got := c.count(want.end); got.max != want.max || math.Abs(got.mean-want.mean) > 1e-6 {
				t.Fatalf("ladder %q: got %+v, want %+v", spec, got, want)
			}
		}
	}
	l := levels.Default()
	got, want := newCounter(l, l.Horizon()).count(30*day).mean, meanOfRound(l, 30*day, 97_913*time.Millisecond)
	if math.Abs(got-want) > 0.02 {
		t.Errorf("mean in 30d is %.3f, want %.3f", got, want)
	}
}
