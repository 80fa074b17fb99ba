package lease

import (
	"context"
	"errors"
	"strconv"
	"time"
)

// sweepAfter is the time from an instance's death to the removal of its counter.
const sweepAfter = 10 * time.Second

// round raises the counter, reads the table and the other counters, and acts on them. It trusts only a server that
// shows its own beat: neither a replica that lags nor a deposed leader can.
func (s *Shared) round(ctx context.Context, sent time.Time) error {
	s.rounds.last = sent
	s.rounds.beats++
	seq, err := s.store.put(ctx, s.store.Beat+s.self.id, strconv.AppendUint(nil, s.rounds.beats, 10))
	if err == nil {
		if seq <= s.rounds.stored {
			s.otherStream()
		}
		s.rounds.stored = seq
		err = s.store.shows(ctx, seq)
	}
	if err == nil {
		err = s.read(ctx, true)
	}
	if err == nil {
		s.view.roster.round(sent, time.Now(), s.others(s.view.table))
		err = s.agree(ctx, sent)
	}
	if err != nil {
		s.failed(ctx, sent, err)
		return err
	}
	s.outage.since = time.Time{}
	s.outage.logged.Reset()
	s.plan(ctx, sent)
	return nil
}

// plan decides when the next round must begin.
func (s *Shared) plan(ctx context.Context, sent time.Time) {
	s.sweep(ctx)
	if s.view.known && !s.company() && !s.wanting() {
		s.rounds.polled = sent
		s.grace.Store(&grace{since: s.at(time.Now()), alone: true})
		return
	}
	s.rounds.next = sent.Add(beatEvery)
	sooner := func(t time.Time) {
		if t.After(sent) && t.Before(s.rounds.next) {
			s.rounds.next = t
		}
	}
	sooner(s.view.stable.Add(stableAfter))
	sooner(s.rounds.sweepAt)
	for _, id := range s.others(s.view.table) {
		sooner(s.view.roster.seen[id].since.Add(s.timeout(id, s.view.table.Instances[id])))
		if !s.view.roster.lives(id) {
			s.ask(sent) // the other instance may believe that it is alone, and then beats only after a call
		}
	}
}

// wanting reports whether a worker of this instance waits for a free lane.
func (s *Shared) wanting() bool {
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
			s.log.Debug("removing the counters of instances that are gone", "err", err)
		}
		s.rounds.sweepBelow, s.rounds.sweepAt = 0, time.Time{}
	}
}

// leave removes this instance from the table.
func (s *Shared) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*storeTimeout)
	defer cancel()
	for range swaps {
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
			s.announce() // this instance has no lanes
			s.log.Warn("cannot announce the stop to the other instances; they detect it within seconds", "err", err)
			return
		}
	}
	if s.rounds.stored == 0 {
		return
	}
	if err := s.store.remove(ctx, s.store.Beat+s.self.id); err != nil {
		s.log.Debug("removing our counter", "err", err)
	}
}
