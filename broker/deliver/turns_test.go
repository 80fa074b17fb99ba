package deliver

import (
	"context"
	"slices"
	"testing"
	"time"

	"delaybroker/broker/message"
	"delaybroker/test/natstest"
)

// queue is a kit that keeps the turn of each message.
type queue struct {
	*kit
	turns map[string]Result // by target and number
}

// ask delivers a message, and returns the wait until its turn. The wait is zero if the message was sent.
func (q *queue) ask(target, number string) (wait time.Duration) {
	id := target + " " + number
	q.Deliver(Message{Target: target, Mode: message.ModeCore, Turn: q.turns[id].Turn}, func(r Result) {
		if r.Outcome == Paced { // reported immediately
			q.turns[id], wait = r, time.Until(r.RetryAt)
		}
	})
	return wait
}

// newQueue returns a queue with two targets that take one message a second. Ten messages for each target have turns.
func newQueue(t *testing.T, s *natstest.Server) *queue {
	q := &queue{kit: newKit(t, s), turns: make(map[string]Result)}
	q.targets.limits.ByTarget = Rates{{Pattern: "slow.>", Value: 1}}
	q.subscribe("slow.>", nil)
	for i, number := range numbers {
		for _, target := range []string{"slow.a", "slow.b"} {
			if got, want := q.ask(target, number), time.Duration(i)*time.Second; got != want {
				t.Fatalf("%s of %s waits for %s, want %s", number, target, got, want)
			}
		}
	}
	return q
}

var numbers = []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}

// TestHaltMovesTurns: while a target is halted, its turns do not pass. After the halt, each message keeps its place, in
// any order in which the messages come, and new messages get later turns. The turns of other targets do not change.
func TestHaltMovesTurns(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		q := newQueue(t, s)
		postponed := 0 * time.Second // total time by which the turns of the target are postponed
		for range 3 {
			q.Halt(context.Background(), func(target string) bool { return target == "slow.a" })
			time.Sleep(time.Hour)
			q.Halt(context.Background(), nil)
			postponed += time.Hour
			for _, number := range []string{"8", "3", "9", "1", "5"} {
				want := time.Duration(slices.Index(numbers, number)) * time.Second
				if got := q.ask("slow.a", number); got != want {
					t.Errorf("halted for %s, %s waits for %s, want %s", postponed, number, got, want)
				}
			}
		}
		if got, want := q.ask("slow.a", "new"), 10*time.Second; got != want {
			t.Errorf("a new message waits for %s, want %s", got, want)
		}
		q.Halt(context.Background(), func(target string) bool { return target == "slow.a" })
		time.Sleep(time.Minute)
		q.Halt(context.Background(), func(target string) bool { return target == "slow.b" })
		q.Halt(context.Background(), nil)
		if got, want := q.ask("slow.a", "1"), time.Second; got != want {
			t.Errorf("after the next halt replaced this one, message 1 waits for %s, want %s", got, want)
		}
		if got := q.ask("slow.b", "1"); got != 0 {
			t.Errorf("message 1 of the other target waits for %s, although its turn has passed", got)
		}
		time.Sleep(time.Minute)
	})
}

// TestMissedTurns: for some time no message was sent. Then each message keeps its place, whichever message comes first:
// the message with the first turn is sent, and the others follow at the interval of the rate.
func TestMissedTurns(t *testing.T) {
	for first, wait := range map[string]time.Duration{"1": 0, "4": turnMissed} { // first is the first message that comes
		natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
			q := newQueue(t, s)
			time.Sleep(20 * time.Second)
			if got := q.ask("slow.a", first); got != wait {
				t.Errorf("%s comes first, and waits for %s, want %s", first, got, wait)
			}
			for i, number := range numbers[1:] {
				if got, want := q.ask("slow.a", number), time.Duration(i)*time.Second; got != want {
					t.Errorf("%s came first, and %s waits for %s, want %s", first, number, got, want)
				}
			}
			time.Sleep(time.Minute)
		})
	}
}

// TestMissedTurnOfOne: one message is delayed, and messages with later turns have been sent. The delayed message gets
// the next turn, and delays the other messages by no more than one turn. A message that is repeated because no answer
// came needs no turn.
func TestMissedTurnOfOne(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		q := newQueue(t, s)
		for _, number := range numbers[2:6] {
			time.Sleep(time.Second)
			if number == "2" {
				time.Sleep(time.Second)
			}
			if got := q.ask("slow.a", number); got != 0 {
				t.Fatalf("in its turn, %s waits for %s", number, got)
			}
		}
		if got, want := q.ask("slow.a", "1"), time.Second; got != want {
			t.Errorf("the delayed message waits for %s, want %s", got, want)
		}
		time.Sleep(time.Second)
		if got, want := q.ask("slow.a", "6"), time.Second; got != want {
			t.Errorf("message 6 waits for %s, want %s", got, want)
		}
		q.Deliver(Message{Target: "slow.a", Mode: message.ModeCore, Turn: q.turns["slow.a 1"].Turn, Repeated: true},
			func(r Result) {
				if r.Outcome == Paced {
					t.Errorf("a repeated message waits until %s", r.RetryAt)
				}
			})
		time.Sleep(time.Minute)
	})
}

// TestTurnsOfKeys: the messages with one key share turns for all their targets, and do not wait for other keys. A
// message without a key gets a turn of its target.
func TestTurnsOfKeys(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		k.targets.limits = Limits{
			ByTarget: Rates{{Pattern: "slow.>", Value: 10}}, ByKey: Rates{{Pattern: "slow.>", Value: 1}},
		}
		k.subscribe("slow.>", nil)
		for _, tt := range []struct {
			target, key string
			wait        time.Duration
		}{
			{"slow.a", "t7", 0},
			{"slow.b", "t7", time.Second},
			{"slow.a", "t8", 0},
			{"slow.a", "t7", 2 * time.Second},
			{"slow.a", "", 0},
			{"slow.a", "", time.Second / 10},
			{"slow.b", "", 0},
			{"slow.a", "t8", time.Second},
		} {
			wait := time.Duration(0)
			k.Deliver(Message{Target: tt.target, RateKey: tt.key, Mode: message.ModeCore}, func(r Result) {
				if r.Outcome == Paced { // Deliver has not returned yet
					wait = time.Until(r.RetryAt)
				}
			})
			if wait != tt.wait {
				t.Errorf("%s with %q waits for %s, want %s", tt.target, tt.key, wait, tt.wait)
			}
		}
		time.Sleep(time.Minute)
	})
}

// TestTurnNames: the name of a turn has at most 32 characters, and is parsed to the same turn.
func TestTurnNames(t *testing.T) {
	ts := newTargets(Limits{}, nil)
	for _, want := range []turn{{}, {at: 1, revision: 1}, {at: 10 * 366 * 24 * time.Hour, revision: 1 << 30}} {
		name := ts.turnName(want)
		if got, ok := ts.parseTurn(name); !ok || got != want || len(name) > 32 {
			t.Errorf("%s is read as %v, %v; want %v", name, got, ok, want)
		}
	}
	for _, name := range []string{"", "another", "another.0.0", ts.pacer, ts.pacer + ".1", ts.pacer + ".?.1"} {
		if got, ok := ts.parseTurn(name); ok {
			t.Errorf("%q is read as %v", name, got)
		}
	}
}
