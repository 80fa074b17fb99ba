package engine

import (
	"testing"
	"time"

	"delaybroker/broker/config"
	"delaybroker/broker/lane"
	"delaybroker/broker/message"
	"delaybroker/levels"
)

// TestSpill: a message that is far from due does not stay in a crowded intake.
func TestSpill(t *testing.T) {
	p := plan{kind: plainLane{}, Config: &config.Config{Ladder: mustLadder(t, "1s 5s 1m")}}
	for _, tt := range []struct {
		name    string
		delay   time.Duration // of the lane
		due     time.Duration
		refused string
		want    string
	}{
		{name: "nearly due", due: minSpill - 1, want: "hold until 249.999999ms"},
		{name: "not nearly due", due: minSpill, want: "hop into 1s"},
		{name: "the longest level that fits", due: 3 * time.Second, want: "hop into 1s"},
		{name: "the smallest level has refused", due: 3 * time.Second, refused: "1s", want: "hop into 1s"},
		{name: "in a level", delay: time.Minute, due: 61 * time.Second, want: "hold until 1m1s"},
	} {
		f := &flight{Message: lane.Message{At: after(0)}, request: message.Request{Due: after(tt.due)}, refusedBy: tt.refused}
		p := p
		p.delay = tt.delay
		if got := nextStep(p, moment{now: epoch, proven: true, crowded: true}, f).String(); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
	long := plan{kind: plainLane{}, Config: &config.Config{Ladder: mustLadder(t, "10s 1m")}} // both are read with pauses
	f := &flight{Message: lane.Message{At: after(0)}, request: message.Request{Due: after(3 * time.Second)}}
	if got, want := nextStep(long, moment{now: epoch, crowded: true}, f).String(), "hold until 3s"; got != want {
		t.Errorf("without a level that is read without a pause: %s, want %s", got, want)
	}
}

// TestStores counts how often a message is stored before its target has it: once in the lane that accepts it, and once
// for each hop. A message that is due beyond the horizon passes a level even if memory is free, and a crowded intake
// adds no further level.
func TestStores(t *testing.T) {
	p := plan{kind: plainLane{}, Config: &config.Config{Ladder: levels.Default()}}
	for _, tt := range []struct {
		due           time.Duration
		free, crowded int
	}{
		{due: minSpill - 1, free: 1, crowded: 1},
		{due: time.Second, free: 1, crowded: 2},
		{due: 3 * time.Second, free: 1, crowded: 2},
		{due: 8 * time.Second, free: 2, crowded: 2}, // 7s, and a second on the wheel of the level 7s
		{due: 10 * time.Second, free: 2, crowded: 2},
		{due: 14 * time.Second, free: 3, crowded: 3}, // 10s 3s
	} {
		for _, m := range []moment{{proven: true}, {proven: true, crowded: true}} {
			got, want := stores(t, p, m, tt.due), tt.free
			if m.crowded {
				want = tt.crowded
			}
			if got != want {
				t.Errorf("due in %s, crowded %t: stored %d times, want %d", tt.due, m.crowded, got, want)
			}
		}
	}
}

// stores returns the number of times that a message is stored on its way from the intake to its firing.
func stores(t *testing.T, p plan, m moment, due time.Duration) (stored int) {
	t.Helper()
	m.now = epoch
	f := &flight{Message: lane.Message{At: after(0)}, request: message.Request{Due: after(due)}}
	stored = 1
	for range 20 {
		switch s := nextStep(p, m, f); s.kind {
		case fire:
			return stored
		case hold:
			m.now = s.at
		case hop:
			stored++
			f.At, p.delay = m.now.Stamp(), s.level.Delay
		default:
			t.Fatalf("due in %s: unexpected step: %s", due, s)
		}
	}
	t.Fatalf("due in %s: the message circles", due)
	return 0
}

// TestSpillAllocatesNothing: while memory is short, the search for a level allocates nothing.
func TestSpillAllocatesNothing(t *testing.T) {
	p := plan{kind: plainLane{}, Config: &config.Config{Ladder: levels.Default(), RetryLadder: levels.Default()}}
	far := &flight{Message: lane.Message{At: after(0)}, request: message.Request{Due: after(4 * time.Hour)}}
	crowded := moment{now: epoch, proven: true, crowded: true}
	if n := testing.AllocsPerRun(100, func() { holdOrSpill(p, crowded, far, far.nextAttempt()) }); n != 0 {
		t.Errorf("the decision to spill a message allocates %.0f times, want 0", n)
	}
	const request = 1 // the message's request in the retry lane
	if n := testing.AllocsPerRun(100, func() { deferStep(p, crowded, far, time.Hour, stalledReason) }); n > request {
		t.Errorf("the decision to defer a message allocates %.0f times, want %d", n, request)
	}
}
