package store

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/lane"
	"delaybroker/broker/leader"
)

// electionWait is the maximum time to wait for a leader that a majority follows. An election takes less.
const electionWait = 4 * time.Second

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

// sample asks the stream's leader for its state.
func (t *Timers) sample(ctx context.Context, stream string) (lane.Sample, error) {
	var info jetstream.StreamInfo
	if err := t.API.Ask(ctx, "STREAM.INFO."+stream, struct{}{}, &info); err != nil {
		return lane.Sample{}, err
	}
	return lane.SampleOf(&info, time.Now()), nil // the local time measures the age of the answer
}

// quorateSample returns the state of the stream from a leader that a majority follows. A new leader does not know its
// followers yet. So quorateSample asks it again, for up to electionWait.
func (t *Timers) quorateSample(ctx context.Context, stream string) (lane.Sample, error) {
	began := time.Now()
	for tries := 1; ; tries++ {
		s, err := t.sample(ctx, stream)
		switch {
		case tries > 1 && ctx.Err() != nil, err == nil && !s.Quorate && time.Since(began) >= electionWait:
			return s, ErrLeader
		case err != nil || s.Quorate:
			return s, err
		}
		WaitToRetry(ctx)
	}
}
