package broker

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"delaybroker/broker/layout"
	"delaybroker/broker/message"
	"delaybroker/levels"
)

func mustLadder(t *testing.T, spec string) levels.Ladder {
	t.Helper()
	l, err := levels.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (s Step) String() string {
	switch s.Kind {
	case Hold:
		return "hold until " + s.At.Sub(epoch).String()
	case Hop:
		return "hop into " + s.Level.Name
	case Fire:
		return "fire"
	case Retry:
		return "retry in " + s.Level.Name + " at " + s.At.Sub(epoch).String()
	}
	return "dead: " + string(s.Problem.Code)
}

// epoch is when the message of a test was stored.
var epoch = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)

// TestDecide is the intake and a level at their exact edges. The horizon of this ladder is 3 s, and 50 ms more.
func TestDecide(t *testing.T) {
	ladder := mustLadder(t, "1s 5s 1m 30m")
	const ms = time.Millisecond
	newer := message.Problemf(message.NewerFormat, "x")
	bad := message.Problemf(message.BadTime, "x")
	for _, tt := range []struct {
		name    string
		lane    time.Duration
		due     time.Duration // after the message was stored
		now     time.Duration
		request message.Request
		problem *message.Problem
		want    string
	}{
		{name: "due now", due: 0, now: 0, want: "fire"},
		{name: "a nanosecond before", due: time.Second, now: time.Second - 1, want: "hold until 1s"},
		{name: "exactly due", due: time.Second, now: time.Second, want: "fire"},
		{name: "long past", due: time.Second, now: time.Hour, want: "fire"},
		{name: "at the horizon", due: 3050 * ms, now: 0, want: "hold until 3.05s"},
		{name: "beyond the horizon", due: 3050*ms + 1, now: 0, want: "hop into 1s"},
		{name: "less than the slack short of a level", due: 5*time.Second - 25*ms, now: 0, want: "hop into 5s"},
		{name: "more than the slack short of a level", due: 5*time.Second - 25*ms - 1, now: 0, want: "hop into 1s"},
		{name: "exactly a level", due: 30 * time.Minute, now: 0, want: "hop into 30m"},
		{name: "longer than all", due: 1000 * time.Hour, now: 0, want: "hop into 30m"},

		{name: "in a level, it is its last", lane: 30 * time.Minute, due: 30 * time.Minute, now: 0, want: "hold until 30m0s"},
		{name: "in a level, due a horizon after it", lane: 30 * time.Minute, due: 30*time.Minute + 3*time.Second, now: 0, want: "hold until 30m3s"},
		{name: "in a level, due more than that", lane: 30 * time.Minute, due: 30*time.Minute + 3*time.Second + 1, now: 0, want: "hold until 29m59.95s"},
		{name: "a nanosecond before it may leave", lane: 30 * time.Minute, due: time.Hour, now: 30*time.Minute - 50*ms - 1, want: "hold until 29m59.95s"},
		{name: "when it may leave", lane: 30 * time.Minute, due: time.Hour, now: 30*time.Minute - 50*ms, want: "hop into 30m"},
		{name: "when it may leave, less remains", lane: 30 * time.Minute, due: time.Hour - 76*ms, now: 30*time.Minute - 50*ms, want: "hop into 1m"},
		{name: "due before the level's end", lane: 30 * time.Minute, due: time.Minute, now: 0, want: "hold until 1m0s"},

		{name: "a retry", due: 0, now: time.Second, request: message.Request{RetryAt: epoch.Add(2 * time.Second)}, want: "hold until 2s"},
		{name: "a retry, due", due: 0, now: 2 * time.Second, request: message.Request{RetryAt: epoch.Add(2 * time.Second)}, want: "fire"},
		{name: "a retry before due", due: 3 * time.Second, now: 2 * time.Second, request: message.Request{RetryAt: epoch.Add(2 * time.Second)}, want: "hold until 3s"},

		{name: "expires now", due: time.Second, now: 2 * time.Second, request: message.Request{Expires: epoch.Add(2 * time.Second)}, want: "fire"},
		{name: "has expired", due: time.Second, now: 2*time.Second + 1, request: message.Request{Expires: epoch.Add(2 * time.Second)}, want: "dead: expired"},
		{name: "bad", due: time.Hour, now: 0, problem: bad, want: "dead: bad_time"},
		{name: "bad and expired", now: time.Hour, request: message.Request{Expires: epoch}, problem: bad, want: "dead: bad_time"},
		{name: "of a newer format", now: time.Second, problem: newer, want: "hold until 1m1s"},
	} {
		tt.request.Due = epoch.Add(tt.due)
		got := decide(layout.Spec{Delay: tt.lane}, ladder, epoch, tt.request, tt.problem, epoch.Add(tt.now)).String()
		if got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestDecideRefused(t *testing.T) {
	retry := mustLadder(t, "1s 5s 30s")
	for _, tt := range []struct {
		name     string
		attempts int
		failed   int
		expires  time.Duration
		want     string
	}{
		{"the first", 5, 0, 0, "retry in 1s at 1s"},
		{"the second", 5, 1, 0, "retry in 5s at 5s"},
		{"the last wait", 5, 2, 0, "retry in 30s at 30s"},
		{"the last wait again", 5, 3, 0, "retry in 30s at 30s"},
		{"the last attempt", 5, 4, 0, "dead: undelivered"},
		{"beyond it", 5, 7, 0, "dead: undelivered"},
		{"one attempt only", 1, 0, 0, "dead: undelivered"},
		{"just before it expires", 5, 0, time.Second, "retry in 1s at 1s"},
		{"just after it expires", 5, 0, time.Second - 1, "dead: expired"},
	} {
		r := message.Request{Attempts: tt.failed}
		if tt.expires > 0 {
			r.Expires = epoch.Add(tt.expires)
		}
		if got := decideRefused(retry, tt.attempts, r, epoch, "full").String(); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// TestWalk takes messages through their whole life, with small latencies everywhere: none fires early, none circles, and
// none takes more hops than its ladder makes necessary.
func TestWalk(t *testing.T) {
	for _, spec := range []string{"default", "rocketmq", "short", "1s", "1s 1m 1h", "7s 11s 13s", "1d"} {
		t.Run(spec, func(t *testing.T) {
			ladder := mustLadder(t, spec)
			rng := rand.New(rand.NewPCG(5, 6))
			all := ladder.Levels()
			for range 1000 {
				first := layout.Spec{} // the intake, or straight into a level
				if rng.IntN(3) == 0 {
					l := all[rng.IntN(len(all))]
					first = layout.Spec{Name: l.Name, Delay: l.Delay}
				}
				longest := min(1000*all[len(all)-1].Delay, 366*24*time.Hour)
				if spec == "1s" {
					longest = time.Minute
				}
				wait := time.Duration(rng.Int64N(int64(longest)))
				if rng.IntN(2) == 0 { // at the edge of a sum of levels
					wait = all[rng.IntN(len(all))].Delay + all[rng.IntN(len(all))].Delay + time.Duration(rng.IntN(7)-3)*25*time.Millisecond + time.Duration(rng.IntN(3)-1)
				}
				wait = max(wait, first.Delay)
				if err := walk(ladder, first, wait, rng); err != nil {
					t.Fatalf("%s from a lane of %s: %v", wait, first.Delay, err)
				}
			}
		})
	}
}

// mostHops passes the longest level as often as it fits, and then each other as often as it fits into the next longer one.
func mostHops(ladder levels.Ladder, wait time.Duration) int {
	all := ladder.Levels()
	most := int(wait/all[len(all)-1].Delay) + 2
	for i := range all[1:] {
		most += int(all[i+1].Delay/all[i].Delay) + 1
	}
	return most
}

func walk(ladder levels.Ladder, at layout.Spec, wait time.Duration, rng *rand.Rand) error {
	r := message.Request{Due: epoch.Add(wait)}
	latency := func() time.Duration { return time.Duration(rng.ExpFloat64() * float64(2*time.Millisecond)) }
	most := mostHops(ladder, wait)
	stored := epoch
	now := stored.Add(latency())
	hops, holds := 0, 0
	for {
		switch s := decide(at, ladder, stored, r, nil, now); s.Kind {
		case Fire:
			if now.Before(r.When()) {
				return fmt.Errorf("fires %s early", r.When().Sub(now))
			}
			if late := now.Sub(r.When()); late > 100*time.Millisecond {
				return fmt.Errorf("fires %s late after %d hops", late, hops)
			}
			if hops > most {
				return fmt.Errorf("%d hops, want at most %d", hops, most)
			}
			return nil
		case Hop:
			hops, holds = hops+1, 0
			stored = now.Add(latency())
			now = stored.Add(latency())
			at = layout.Spec{Name: s.Level.Name, Delay: s.Level.Delay}
		case Hold:
			if holds++; holds > 2 || !s.At.After(now) {
				return fmt.Errorf("held %d times in one lane, now until %s from %s", holds, s.At, now)
			}
			now = s.At
			if rng.IntN(2) == 0 {
				now = now.Add(latency())
			}
		default:
			return fmt.Errorf("step %v", s)
		}
	}
}
