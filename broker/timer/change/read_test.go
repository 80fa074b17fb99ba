package change

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/leader"
	"delaybroker/broker/message"
	"delaybroker/broker/timer"
	"delaybroker/test/natstest"
)

// TestRoundMovesFromNow: if a round moves to a delay from now, the delay begins during the request, although an earlier
// answer of the leader would give another time.
func TestRoundMovesFromNow(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, on *natstest.Server) {
		timers, js := newTimers(t, on)
		timers.Policy.Keys = message.NewKeys([]string{"a secret of sixteen bytes"})
		timers.Publish = func(ctx context.Context, m *nats.Msg) jsapi.Reply {
			ack, err := js.PublishMsg(ctx, m)
			if err != nil {
				return jsapi.Reply{Err: err}
			}
			return jsapi.Reply{Ack: jsapi.Ack{Stream: ack.Stream, Sequence: ack.Sequence}}
		}
		c := Change{
			Call: timer.Call{Verb: timer.Set}, Key: "k", Target: "orders.x",
			Header: message.Header{message.HeaderEvery: {"1h"}},
		}
		if got, err := timers.Do(t.Context(), c); err != nil || got.Outcome != timer.Pending {
			t.Fatalf("set: %+v, %v", got, err)
		}
		for _, wrong := range []time.Duration{-time.Second, time.Second} {
			now := time.Now()
			timers.leaderTime = leaderTime{answer: now.Add(wrong), askedAt: now}
			c = Change{Call: timer.Call{Verb: timer.Move}, Key: "k", Target: "orders.x", For: "30m"}
			got, err := timers.Do(t.Context(), c)
			if want := now.Add(30 * time.Minute); err != nil || !got.Due.Equal(want) {
				t.Errorf("moved at %s with an answer that is wrong by %s: %+v, %v; want due %s", now, wrong, got, err, want)
			}
		}
	})
}

// TestLeaderTime: the result is an upper bound of the leader's time, even if the leader answered immediately, and the
// answer travelled for long. An answer to an old question does not count.
func TestLeaderTime(t *testing.T) {
	const ahead = time.Hour // the leader's clock, relative to this host's
	asked := time.Now()
	l := leaderTime{answer: asked.Add(ahead), askedAt: asked}
	for _, elapsed := range []time.Duration{0, 1, time.Millisecond, leader.Trust} {
		local := asked.Add(elapsed)
		if now, ok := l.upperBound(local); !ok || !now.Equal(local.Add(ahead)) {
			t.Errorf("%s after the question: %s, %t; want %s", elapsed, now, ok, local.Add(ahead))
		}
	}
	if _, ok := l.upperBound(asked.Add(leader.Trust + 1)); ok {
		t.Errorf("an answer to a question of %s ago gives a bound, want none", leader.Trust+1)
	}
	if _, ok := (leaderTime{}).upperBound(asked); ok {
		t.Error("there is a bound before the first question, want none")
	}
}
