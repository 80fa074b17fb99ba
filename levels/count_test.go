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
	most int
	end  time.Duration
}

// A counter counts hops exactly, for all delays and not only for whole seconds. Its horizon may be any that is not
// shorter than the shortest level.
type counter struct {
	levels  []levels.Level
	horizon time.Duration
	known   map[time.Duration]hopCount
}

func newCounter(l levels.Ladder, horizon time.Duration) counter {
	return counter{l.Levels(), horizon, make(map[time.Duration]hopCount)}
}

// below counts the hops of all delays in [0, end). It splits this range at the longest level that is shorter than end,
// or at the horizon if the horizon is longer. A delay above this point has one hop more than the remaining time after
// that level.
func (c counter) below(end time.Duration) hopCount {
	if end <= c.horizon {
		return hopCount{end: end}
	}
	if known, ok := c.known[end]; ok {
		return known
	}
	first := c.levels[0].Delay
	for _, level := range c.levels {
		if level.Delay < end {
			first = level.Delay
		}
	}
	from := max(first, c.horizon)
	lower := c.below(from)
	rest := c.below(end - first) // also counts times below from-first; these are below the horizon, and have no hops
	sum := lower.mean*float64(from) + float64(end-from) + rest.mean*float64(rest.end)
	n := hopCount{sum / float64(end), max(lower.most, 1+rest.most), end}
	c.known[end] = n
	return n
}

// TestCounterIsChain: the counter has the same results as Chain.
func TestCounterIsChain(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for _, spec := range []string{"default", "rocketmq", "short", "2s 1h", "7s 11s 13s", "1m 1h"} {
		l := mustParse(t, spec)
		c := newCounter(l, l.Horizon())
		sum, most := 0, 0
		for s := time.Duration(0); s < 3600; s++ {
			// All delays in one second have the same hops, because levels and horizon are whole seconds.
			hops, _ := l.Chain(s*time.Second + time.Duration(rng.Int64N(int64(time.Second))))
			sum += len(hops)
			most = max(most, len(hops))
			want := hopCount{float64(sum) / float64(s+1), most, (s + 1) * time.Second}
			if got := c.below(want.end); got.most != want.most || math.Abs(got.mean-want.mean) > 1e-6 {
				t.Fatalf("ladder %q: got %+v, want %+v", spec, got, want)
			}
		}
	}
	l := levels.Default()
	got, want := newCounter(l, l.Horizon()).below(30*day).mean, meanOfRound(l, 30*day, 97_913*time.Millisecond)
	if math.Abs(got-want) > 0.02 {
		t.Errorf("mean in 30d is %.3f, want %.3f", got, want)
	}
}
