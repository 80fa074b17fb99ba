package levels_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"delaybroker/levels"
)

// TestHopsOfMillisecondShort: a delay that is a millisecond shorter than a long level takes many hops. The level itself
// takes one hop.
func TestHopsOfMillisecondShort(t *testing.T) {
	tests := []struct {
		level, want string
	}{
		{"3s", ""},
		{"5s", "3s"},
		{"1m", "45s 10s 3s"},
		{"30m", "20m 9m 45s 10s 3s"},
		{"1h", "30m 20m 9m 45s 10s 3s"},
		{"2h", "90m 20m 9m 45s 10s 3s"},
		{"1d", "12h 6h 4h 90m 20m 9m 45s 10s 3s"},
		{"14d", "7d 3d 3d 12h 6h 4h 90m 20m 9m 45s 10s 3s"},
	}
	l := levels.Default()
	for _, tt := range tests {
		level, ok := l.Lookup(tt.level)
		if !ok {
			t.Fatalf("no level %s", tt.level)
		}
		hops, _ := l.Chain(level.Delay - time.Millisecond)
		var names []string
		for _, hop := range hops {
			names = append(names, hop.Name)
		}
		got := strings.Join(names, " ")
		if want := tt.want; got != want {
			t.Errorf("Chain(%s - 1ms): got %s, want %s", tt.level, got, want)
		}
		t.Logf("%3s - 1ms  %2d hops: %s", tt.level, len(hops), got)
	}
}

// TestHopsOfLateMessages: a message that loses time on its way takes no more hops than the maximum for all delays up to
// its own. doc.go explains the reason.
func TestHopsOfLateMessages(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	for _, spec := range []string{"rocketmq", "short", "default"} {
		l := mustParse(t, spec)
		c := newCounter(l, l.Horizon())
		for range 20_000 {
			delay := time.Duration(rng.Int64N(int64(2 * time.Hour)))
			remaining := delay
			hops := 0
			for {
				level, ok := l.Next(remaining)
				if !ok {
					break
				}
				hops++
				lost := time.Duration(rng.Int64N(1 << rng.IntN(40))) // up to 9 minutes
				remaining -= level.Delay + lost
			}
			if limit := c.count(delay + 1).max; hops > limit {
				t.Fatalf("%s: %d hops for %v, want at most %d", spec, hops, delay, limit)
			}
		}
	}
}

// TestHopsWithSlack moves messages as a broker does: a message begins to leave its level a lookahead before the end of
// the level, and reading and publishing take some time. With a part of the lookahead added to the remaining time as
// slack, a message takes a level that it would miss by milliseconds. The other part of the lookahead is for the move:
// with the whole lookahead as slack, messages reach the wheel late.
func TestHopsWithSlack(t *testing.T) {
	const (
		lookahead   = 50 * time.Millisecond
		maxMoveTime = 20 * time.Millisecond
		messages    = 20_000
	)
	l := levels.Default()
	fitting := slices.DeleteFunc(l.Levels(), func(level levels.Level) bool { return level.Delay < l.Horizon() })
	delays := []struct {
		name string
		pick func(*rand.Rand) time.Duration
	}{
		{"any in 2h", func(rng *rand.Rand) time.Duration {
			return l.Horizon() + time.Duration(rng.Int64N(int64(2*time.Hour)))
		}},
		{"a level", func(rng *rand.Rand) time.Duration { return fitting[rng.IntN(len(fitting))].Delay }},
		{"minutes in 2h", func(rng *rand.Rand) time.Duration { return time.Minute * time.Duration(1+rng.IntN(120)) }},
	}
	tests := []struct {
		slack time.Duration
		want  string
	}{
		{0, "any in 2h: 3.95; a level: 1.96; minutes in 2h: 2.44; on the wheel 32ms before due"},
		{lookahead / 2, "any in 2h: 3.94; a level: 1.00; minutes in 2h: 2.29; on the wheel 7ms before due"},
		{lookahead, "any in 2h: 3.95; a level: 1.00; minutes in 2h: 2.29; on the wheel -18ms before due"},
	}
	for _, tt := range tests {
		rng := rand.New(rand.NewPCG(11, 12))
		move := func() time.Duration { return time.Duration(rng.Int64N(int64(maxMoveTime))) }
		shortest := time.Hour
		var means []string
		for _, kind := range delays {
			hops := 0
			for range messages {
				remaining := kind.pick(rng) - move() // out of the intake
				for {
					level, ok := l.Next(remaining + tt.slack)
					if !ok {
						break
					}
					hops++
					remaining -= level.Delay - lookahead + move()
				}
				shortest = min(shortest, remaining)
			}
			means = append(means, fmt.Sprintf("%s: %.2f", kind.name, float64(hops)/messages))
		}
		got := fmt.Sprintf("%s; on the wheel %v before due", strings.Join(means, "; "), shortest.Round(time.Millisecond))
		if want := tt.want; got != want {
			t.Errorf("slack %v:\n got %s\nwant %s", tt.slack, got, want)
		}
		t.Logf("slack %4v  %s", tt.slack, got)
	}
}
