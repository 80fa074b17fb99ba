package lease

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/ratelog"
)

const (
	// roundPause is the minimum time between two rounds, even with many calls.
	roundPause = 2 * time.Millisecond
	// readInterval is the interval at which an instance reads the counters. It is shorter than beatInterval: the sooner
	// an instance reads a beat, the sooner it detects that the next beat is missing.
	readInterval = beatInterval / 2
	// retryInterval is the pause after a failed round, unless the stream is full.
	retryInterval = 250 * time.Millisecond
	// offlineInterval is the interval at which an instance without a connection checks the connection, in case nats.go
	// does not report that the connection is up again.
	offlineInterval = 5 * time.Second
	// pollInterval is the interval at which an instance that is alone reads the table from the leader.
	pollInterval = 10 * time.Second
	// callLifetime is the time after which an instance drops the last call of another instance from memory.
	callLifetime = time.Minute
	// alertInterval is the interval at which the log reports a long outage.
	alertInterval = time.Minute
)

// turn is one iteration of Run. It renews the sign of life, reads, or has a round, as necessary. It returns the maximum
// time until the next turn.
func (s *Shared) turn(ctx context.Context, woken bool) time.Duration {
	now := time.Now()
	s.rounds.pending = s.rounds.pending || woken
	s.takeCalls(now)
	if g := s.grace.Load(); !s.rounds.pending && g != nil && g.alone && g.permits(s.at(now), s.store.conn.IsConnected()) {
		s.grace.Store(&grace{beatSentAt: s.at(now), alone: true})
		switch changed, err := s.pollTable(ctx, now); {
		case errors.Is(err, errCutOff):
			s.rounds.pending = true
			return roundPause
		case err != nil:
			s.rounds.pending = true
			s.handleFailure(ctx, now, err)
			return s.retryIn(ctx, err)
		case !changed:
			return signInterval
		}
	}
	if wait := s.rounds.lastStart.Add(roundPause).Sub(now); wait > 0 {
		return wait
	}
	if !s.store.conn.IsConnected() {
		s.view.liveness.recordFailure()
		s.outage.start = time.Time{} // without a connection, this instance can deliver nothing, and needs no lanes
		return offlineInterval
	}
	var err error
	if s.rounds.nextStart.After(now) && !s.rounds.pending {
		sequence := s.view.sequence
		err = s.read(ctx, false)
		s.rounds.pending = s.view.sequence != sequence
		s.rounds.lastStart = now
	} else {
		s.rounds.pending = false
		err = s.round(ctx, now)
	}
	if err != nil {
		s.rounds.pending = true
		return s.retryIn(ctx, err)
	}
	if s.rounds.pending {
		return roundPause
	}
	s.logState.rounds.report(s.log, nil)
	if g := s.grace.Load(); g != nil && g.alone {
		return signInterval
	}
	return min(readInterval, max(time.Until(s.rounds.nextStart), 0))
}

// retryIn logs an error, and returns the time until the next attempt.
func (s *Shared) retryIn(ctx context.Context, err error) time.Duration {
	if ctx.Err() != nil {
		return 0
	}
	s.logState.rounds.report(s.log, err)
	if errors.Is(err, errFull) {
		return beatInterval
	}
	return retryInterval
}

// pollTable requests the sequence of the table from the leader, at most once per pollInterval, and reports whether the
// sequence has changed. Only an instance that is alone calls pollTable.
func (s *Shared) pollTable(ctx context.Context, now time.Time) (changed bool, err error) {
	if now.Sub(s.rounds.polledAt) < pollInterval {
		return false, nil
	}
	var sequence uint64
	err = s.whileConnected(ctx, func(ctx context.Context) error {
		m, _, err := s.store.lastMessage(ctx, s.store.Table)
		sequence = m.Sequence
		return err
	})
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return true, nil // the table is gone: the stream was purged
	case err != nil:
		return false, err
	}
	s.rounds.polledAt = now
	return sequence != s.view.sequence, nil
}

// whileConnected runs request, and cancels it when the state of the connection changes. An instance that is alone may
// miss a call at such a change, and must not act until it has read the table.
func (s *Shared) whileConnected(ctx context.Context, request func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	result := make(chan error, 1)
	go func() { result <- request(ctx) }()
	select {
	case err := <-result:
		return err
	case _, open := <-s.status:
		s.connectionChanged(open)
		cancel()
		<-result
		return errCutOff
	}
}

// failureLog logs an outage of the rounds.
type failureLog struct {
	start    time.Time // time of the first failure; zero while rounds succeed
	logLimit ratelog.Limit
}

// report logs a failed turn at intervals, and the first good turn after a logged failure.
func (f *failureLog) report(log *slog.Logger, err error) {
	if err == nil {
		if f.logLimit.Reset() {
			log.Info("instances agree on the owners of lanes again", "after", time.Since(f.start).Round(time.Millisecond))
		}
		f.start = time.Time{}
		return
	}
	if f.start.IsZero() {
		f.start = time.Now()
	}
	interval := ratelog.Interval
	if time.Since(f.start) > alertInterval {
		interval = alertInterval
	}
	if _, ok := f.logLimit.Allow(interval); ok {
		log.Warn("instances cannot agree on the owners of lanes; will retry", "err", err, "since", f.start.UTC())
	}
}
