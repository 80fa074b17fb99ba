package engine

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"delaybroker/broker/config"
	"delaybroker/broker/lane"
	"delaybroker/broker/message"
	"delaybroker/broker/streams"
	"delaybroker/levels"
)

// TestWalk moves messages from the first lane to the firing, with small latencies in each step. No message fires early,
// circles, or takes more hops than its ladder requires.
func TestWalk(t *testing.T) {
	for _, spec := range []string{"default", "rocketmq", "short", "1s", "1s 1m 1h", "7s 11s 13s", "1d"} {
		t.Run(spec, func(t *testing.T) {
			ladder := mustLadder(t, spec)
			rng := rand.New(rand.NewPCG(5, 6))
			all := ladder.Levels()
			for range 1000 {
				first := streams.Spec{} // the intake, or a level
				if rng.IntN(3) == 0 {
					l := all[rng.IntN(len(all))]
					first = streams.Spec{Name: l.Name, Delay: l.Delay}
				}
				longest := min(1000*all[len(all)-1].Delay, 366*24*time.Hour)
				if spec == "1s" {
					longest = time.Minute
				}
				wait := time.Duration(rng.Int64N(int64(longest)))
				if rng.IntN(2) == 0 { // close to a sum of two levels
					wait = all[rng.IntN(len(all))].Delay + all[rng.IntN(len(all))].Delay
					wait += time.Duration(rng.IntN(7)-3)*25*time.Millisecond + time.Duration(rng.IntN(3)-1)
				}
				wait = max(wait, first.Delay)
				if err := walk(ladder, first, wait, rng); err != nil {
					t.Fatalf("%s from a lane of %s: %v", wait, first.Delay, err)
				}
			}
		})
	}
}

// maxHops returns an upper bound of the hops of a wait: the longest level as often as it fits into the wait, and each
// other level as often as it fits into the next longer level.
func maxHops(ladder levels.Ladder, wait time.Duration) int {
	all := ladder.Levels()
	most := int(wait/all[len(all)-1].Delay) + 2
	for i := range all[1:] {
		most += int(all[i+1].Delay/all[i].Delay) + 1
	}
	return most
}

// walk moves a message from a lane to its firing. It returns an error if the message fires early or late, or circles.
func walk(ladder levels.Ladder, at streams.Spec, wait time.Duration, rng *rand.Rand) error {
	r := message.Request{Due: after(wait)}
	latency := func() time.Duration { return time.Duration(rng.ExpFloat64() * float64(2*time.Millisecond)) }
	most := maxHops(ladder, wait)
	stored := epoch
	now := stored.Add(latency())
	hops, holds := 0, 0
	for {
		f := &flight{Message: lane.Message{At: stored.Stamp()}, request: r}
		p := plan{kind: plainLane{}, delay: at.Delay, Config: &config.Config{Ladder: ladder}}
		switch s := nextStep(p, moment{now: now, proven: true}, f); s.kind {
		case fire:
			if now.Before(f.nextAttempt()) {
				return fmt.Errorf("fires %s early", f.nextAttempt().Sub(now))
			}
			if late := now.Sub(f.nextAttempt()); late > 100*time.Millisecond {
				return fmt.Errorf("fires %s late after %d hops", late, hops)
			}
			if hops > most {
				return fmt.Errorf("%d hops, want at most %d", hops, most)
			}
			return nil
		case hop:
			hops, holds = hops+1, 0
			stored = now.Add(latency())
			now = stored.Add(latency())
			at = streams.Spec{Name: s.level.Name, Delay: s.level.Delay}
		case hold:
			if holds++; holds > 2 || !s.at.After(now) {
				return fmt.Errorf("held %d times in one lane, now until %s from %s", holds, s.at, now)
			}
			now = s.at
			if rng.IntN(2) == 0 {
				now = now.Add(latency())
			}
		default:
			return fmt.Errorf("step %v", s)
		}
	}
}
