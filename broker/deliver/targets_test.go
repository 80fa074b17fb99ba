package deliver

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/message"
	"delaybroker/test/natstest"
)

// TestRate: of 300 messages for a target with a rate of 100 a second, one is sent immediately. Each of the others gets
// its own turn, 10 ms after the previous turn. Messages for another target of the same pattern are not delayed.
func TestRate(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		k.targets.limits.ByTarget = Rates{{Pattern: "slow.>", Value: 100}}
		seen := k.subscribe("slow.>", nil)
		start := time.Now()
		var turns []time.Duration
		var pacer string
		deliver := func(target, paced string) string {
			got := "sent"
			k.Deliver(Message{Target: target, Mode: message.ModeCore, Turn: paced}, func(r Result) {
				if r.Outcome == Paced {
					turns, pacer = append(turns, r.RetryAt.Sub(start)), r.Turn
					got = "later"
				}
			})
			return got
		}
		for i := range 300 {
			want := "later"
			if i == 0 {
				want = "sent"
			}
			if got := deliver("slow.a", ""); got != want {
				t.Fatalf("message %d: %s, want %s", i, got, want)
			}
		}
		for i, turn := range turns {
			if want := time.Duration(i+1) * 10 * time.Millisecond; turn != want {
				t.Fatalf("turn %d is after %s, want %s", i, turn, want)
			}
		}
		if got := deliver("slow.b", ""); got != "sent" {
			t.Errorf("another target: %s, want sent", got)
		}
		for range 299 { // each message comes again in its turn
			time.Sleep(10 * time.Millisecond)
			if got := deliver("slow.a", pacer); got != "sent" {
				t.Fatalf("in its turn: %s", got)
			}
		}
		if got := deliver("slow.a", ""); got != "later" {
			t.Errorf("immediately after the last turn: %s, want later", got)
		}
		time.Sleep(20 * time.Millisecond)
		if got := deliver("slow.a", ""); got != "sent" {
			t.Errorf("20 ms after the last turn: %s, want sent", got)
		}
		time.Sleep(time.Second)
		if got := seen.get(); got != 302 {
			t.Errorf("%d were seen, want 302", got)
		}
	})
}

// TestRateOfAnother: a turn of another deliverer does not count, so messages with such a turn and new messages share
// the rate.
func TestRateOfAnother(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		k.targets.limits.ByTarget = Rates{{Pattern: "slow", Value: 100}}
		k.subscribe("slow", nil)
		start, last := time.Now(), time.Duration(0)
		for range 50 {
			for _, paced := range []string{"", "another"} {
				k.Deliver(Message{Target: "slow", Mode: message.ModeCore, Turn: paced}, func(r Result) {
					if r.Outcome == Paced {
						last = r.RetryAt.Sub(start)
					}
				})
			}
			time.Sleep(10 * time.Millisecond)
		}
		if want := 990 * time.Millisecond; last != want {
			t.Errorf("the hundredth has its turn after %s, want %s", last, want)
		}
	})
}

// TestRateAndExpiry: a message that would expire before its turn takes no turn.
func TestRateAndExpiry(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		k.targets.limits.ByTarget = Rates{{Pattern: "slow", Value: 1}}
		k.subscribe("slow", nil)
		start := time.Now()
		var expired int
		for range 300 {
			k.Deliver(Message{Target: "slow", Mode: message.ModeCore, Expires: start.Add(10 * time.Second)}, func(r Result) {
				if r.Outcome == Expired && r.Reason != "" {
					expired++
				}
			})
		}
		var turn time.Duration
		k.Deliver(Message{Target: "slow", Mode: message.ModeCore}, func(r Result) { turn = r.RetryAt.Sub(start) })
		if expired != 289 || turn != 11*time.Second {
			t.Errorf("%d expired, and the next turn is after %s; want 289 and 11s", expired, turn)
		}
		time.Sleep(time.Second)
	})
}

// TestTargetsAreForgotten: the numbers of idle targets and of idle groups in memory are bounded.
func TestTargetsAreForgotten(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		k.stream(jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}, Storage: jetstream.MemoryStorage})
		results := &count{}
		const total = 3 * minSweep
		for i := range total {
			k.Deliver(Message{Target: fmt.Sprintf("orders.%d", i)}, func(Result) { results.add() })
			if i%1000 == 0 {
				synctest.Wait()
			}
		}
		synctest.Wait()
		if got := results.get(); got != total {
			t.Errorf("%d results, want %d", got, total)
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		const limit = minSweep + 1000
		if targets, groups := len(k.targets.bySubject), len(k.groups.byName); targets > limit || groups > limit {
			t.Errorf("%d targets and %d groups are kept, want at most %d", targets, groups, limit)
		}
	})
}
