package lease

import (
	"context"
	"errors"
	"strconv"
	"time"
)

// sweepAfter is the time from an instance's death to the removal of its counter.
const sweepAfter = 10 * time.Second

// round raises the counter, reads the table and the other counters, and acts on them. It trusts a server only if the
// server shows this instance's own beat (checkFresh): neither a replica that lags nor a deposed leader can show this
// beat.
func (s *Shared) round(ctx context.Context, sent time.Time) error {
	s.rounds.last = sent
	s.rounds.beats++
	seq, err := s.store.put(ctx, s.store.Beat+s.self.id, strconv.AppendUint(nil, s.rounds.beats, 10))
	if err == nil {
		if seq <= s.rounds.stored {
			s.resetSequences()
		}
		s.rounds.stored = seq
		err = s.store.checkFresh(ctx, seq)
	}
	if err == nil {
		err = s.read(ctx, true)
	}
	if err == nil {
		s.view.liveness.recordSuccess(sent, time.Now(), s.others(s.view.table))
		err = s.agree(ctx, sent)
	}
	if err != nil {
		s.handleFailure(ctx, sent, err)
		return err
	}
	s.outage.since = time.Time{}
	s.outage.logged.Reset()
	s.plan(ctx, sent)
	return nil
}

// plan sets the time at which the next round must begin. If this instance is alone, no round is needed.
func (s *Shared) plan(ctx context.Context, sent time.Time) {
	s.sweep(ctx)
	if s.view.known && !s.hasPeers() && !s.awaitsLane() {
		s.rounds.polled = sent
		s.grace.Store(&grace{since: s.at(time.Now()), alone: true})
		return
	}
	s.rounds.next = sent.Add(beatInterval)
	schedule := func(t time.Time) { // moves the next round to t, if that is earlier
		if t.After(sent) && t.Before(s.rounds.next) {
			s.rounds.next = t
		}
	}
	schedule(s.view.membersChanged.Add(stableAfter))
	schedule(s.rounds.sweepAt)
	for _, id := range s.others(s.view.table) {
		schedule(s.view.liveness.seen[id].first.Add(s.timeout(id, s.view.table.Instances[id])))
		if !s.view.liveness.everAlive(id) {
			s.ask(sent) // the other instance may believe that it is alone, and then beats only after a call
		}
	}
}

// awaitsLane reports whether a worker of this instance waits for a free lane.
func (s *Shared) awaitsLane() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for lane := range s.local.waiters {
		if s.view.table.Lanes[lane].Instance == "" {
			return true
		}
	}
	return false
}

// sweep removes the counters of dead instances, once all live instances have raised theirs.
func (s *Shared) sweep(ctx context.Context) {
	switch now := time.Now(); {
	case s.rounds.sweepAt.IsZero():
	case s.rounds.sweepBelow == 0:
		s.rounds.sweepBelow = s.rounds.stored
	case !now.Before(s.rounds.sweepAt):
		err := s.store.sweep(ctx, s.rounds.sweepBelow)
		if err != nil {
			s.log.Debug("cannot remove the counters of dead instances", "err", err)
		}
		s.rounds.sweepBelow, s.rounds.sweepAt = 0, time.Time{}
	}
}

// leave removes this instance from the table.
func (s *Shared) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*storeTimeout)
	defer cancel()
	for range maxWrites {
		if _, in := s.view.table.Instances[s.self.id]; !in {
			break
		}
		t := s.view.table.clone()
		t.drop(s.self.id)
		err := s.write(ctx, t)
		if errors.Is(err, errConflict) {
			err = s.rereadTable(ctx)
		}
		if err != nil {
			s.announce() // the call lists no lanes, so the other instances may take them
			s.log.Warn("cannot announce the stop to the other instances; they detect it within seconds", "err", err)
			return
		}
	}
	if s.rounds.stored == 0 {
		return
	}
	if err := s.store.remove(ctx, s.store.Beat+s.self.id); err != nil {
		s.log.Debug("cannot remove this instance's counter", "err", err)
	}
}
