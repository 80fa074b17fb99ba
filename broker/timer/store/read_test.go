package store

import (
	"testing"
	"time"

	"delaybroker/broker/leader"
)

// TestLeaderTime: the result is an upper bound of the leader's time, even if the leader answered immediately, and the
// answer travelled for long. An answer to an old question does not count.
func TestLeaderTime(t *testing.T) {
	const ahead = time.Hour // the leader's clock, relative to this host's
	asked := time.Now()
	l := leaderTime{answer: asked.Add(ahead), asked: asked}
	for _, elapsed := range []time.Duration{0, 1, time.Millisecond, leader.Trust} {
		local := asked.Add(elapsed)
		if now, ok := l.upperBound(local); !ok || !now.Equal(local.Add(ahead)) {
			t.Errorf("%s after the question: %s, %t; want %s", elapsed, now, ok, local.Add(ahead))
		}
	}
	if _, ok := l.upperBound(asked.Add(leader.Trust + 1)); ok {
		t.Errorf("an answer to a question of %s ago counts", leader.Trust+1)
	}
	if _, ok := (leaderTime{}).upperBound(asked); ok {
		t.Error("there is a time before the first question")
	}
}
