package store

import (
	"context"
	"fmt"
	"time"

	"delaybroker/broker/leader"
)

// Now returns the time of the leader of the timers' stream, whose clock decides when a timer is due. The result is
// never later than that clock. Now asks the leader, unless it has answered within [leader.Trust].
func (t *Timers) Now(ctx context.Context) (time.Time, error) {
	if now, ok := t.estimate(time.Now()); ok {
		return now, nil
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	s, err := t.sample(ctx, t.Policy.Names.TimersStream())
	if err != nil {
		return time.Time{}, fmt.Errorf("read the time of the stream of timers: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.clock == nil {
		t.clock = leader.NewClock(s.Received)
	}
	t.clock.Record(leader.Answer{Time: s.ServerTime, Received: s.Received, Leader: s.Leader, LastSeq: s.LastSeq})
	return s.ServerTime, nil
}

// estimate returns the leader's time at a time of this host's clock. Only differences of local times count. Ok is false
// if the leader must be asked.
func (t *Timers) estimate(local time.Time) (now time.Time, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.clock == nil || t.clock.Suspended(local) {
		return time.Time{}, false
	}
	at, fresh := t.clock.Now(local)
	return at.Stamp(), fresh
}
