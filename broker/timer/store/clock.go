package store

import (
	"context"
	"fmt"
	"sync"
	"time"

	"delaybroker/broker/leader"
)

// clock estimates the time of the leader of the timers' stream from the leader's answers.
type clock struct {
	mu    sync.Mutex    // guards known; not held during a request
	known *leader.Clock // nil before the first answer
}

// Now returns the time of the leader of the timers' stream, whose clock decides when a timer is due. The result is
// never later than that clock. Now asks the leader, unless it has answered within [leader.Trust].
func (t *Timers) Now(ctx context.Context) (time.Time, error) {
	if now, ok := t.clock.now(time.Now()); ok {
		return now, nil
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	s, err := t.sample(ctx, t.Policy.Names.TimersStream())
	if err != nil {
		return time.Time{}, fmt.Errorf("read the time of the stream of timers: %w", err)
	}
	return t.clock.look(leader.Answer{Time: s.ServerTime, Received: s.Received, Leader: s.Leader, LastSeq: s.LastSeq}), nil
}

// now returns the leader's time at a time of this host's clock. Only differences of local times count. Ok is false if
// the leader must be asked.
func (c *clock) now(local time.Time) (now time.Time, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil || c.known.Suspended(local) {
		return time.Time{}, false
	}
	at, fresh := c.known.Now(local)
	return at.Stamp(), fresh
}

// look records an answer of the leader, and returns the time in it.
func (c *clock) look(a leader.Answer) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil {
		c.known = leader.NewClock(a.Received)
	}
	c.known.Record(a)
	return a.Time
}
