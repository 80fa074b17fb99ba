package lease

import (
	"context"
	"errors"
	"strconv"
	"time"
)

// sweepDelay is the minimum time between the removal of a dead instance from the table and the removal of its counter.
const sweepDelay = 10 * time.Second

// round raises the counter, reads the table and the other counters, and acts on them. Sent is the start of the round.
func (s *Shared) round(ctx context.Context, sent time.Time) error {
	s.rounds.lastStart = sent
	s.rounds.counter++
	seq, err := s.store.put(ctx, s.store.Beat+s.self.id, strconv.AppendUint(nil, s.rounds.counter, 10))
	if err == nil {
		if seq <= s.rounds.beatSequence {
			s.resetSequences()
		}
		s.rounds.beatSequence = seq
		err = s.store.checkFresh(ctx, seq)
	}
	if err == nil {
		err = s.read(ctx, true)
	}
	if err == nil {
		s.view.liveness.recordSuccess(sent, time.Now(), s.otherMembers(s.view.table))
		err = s.agree(ctx, sent)
	}
	if err != nil {
		s.handleFailure(ctx, sent, err)
		return err
	}
	s.outage.start = time.Time{}
	s.outage.logLimit.Reset()
	s.plan(ctx, sent)
	return nil
}

// plan sweeps, and sets the time at which the next round must begin. An instance that is alone needs no round, unless
// it has no table, or one of its workers waits for a free lane.
func (s *Shared) plan(ctx context.Context, sent time.Time) {
	s.sweep(ctx)
	if s.view.hasTable && !s.hasPeers() && !s.awaitsLane() {
		s.rounds.polledAt = sent
		s.grace.Store(&grace{beatSentAt: s.at(time.Now()), alone: true})
		return
	}
	s.rounds.nextStart = sent.Add(beatInterval)
	schedule := func(t time.Time) { // moves the next round to t, if that is earlier
		if t.After(sent) && t.Before(s.rounds.nextStart) {
			s.rounds.nextStart = t
		}
	}
	schedule(s.view.membersChanged.Add(stabilityTime))
	schedule(s.rounds.sweepAt)
	for _, id := range s.otherMembers(s.view.table) {
		schedule(s.view.liveness.sightings[id].firstRead.Add(s.timeout(id, s.view.table.Instances[id])))
		if !s.view.liveness.everAlive(id) {
			s.ask(sent) // the other instance may believe that it is alone, and then raises its counter only after a call
		}
	}
}

// awaitsLane reports whether a worker of this instance waits for a free lane.
func (s *Shared) awaitsLane() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for lane := range s.state.waiters {
		if s.view.table.Lanes[lane].Instance == "" {
			return true
		}
	}
	return false
}

// sweep removes the counters of dead instances. Its first call after a death notes the sequence of this instance's
// beat. A later call, after sweepDelay, removes the counters below this sequence. In the meantime each live instance
// has usually raised its counter, and its new message has a higher sequence.
func (s *Shared) sweep(ctx context.Context) {
	switch now := time.Now(); {
	case s.rounds.sweepAt.IsZero():
	case s.rounds.sweepSequence == 0:
		s.rounds.sweepSequence = s.rounds.beatSequence
	case !now.Before(s.rounds.sweepAt):
		err := s.store.api.PurgeBelow(ctx, s.store.Stream, s.store.Beat+"*", s.rounds.sweepSequence)
		if err != nil {
			s.log.Debug("cannot remove the counters of dead instances", "err", err)
		}
		s.rounds.sweepSequence, s.rounds.sweepAt = 0, time.Time{}
	}
}

// leave removes this instance from the table, and its counter from the stream.
func (s *Shared) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*storeTimeout)
	defer cancel()
	for range maxWrites {
		if _, joined := s.view.table.Instances[s.self.id]; !joined {
			break
		}
		t := s.view.table.clone()
		t.drop(s.self.id)
		err := s.write(ctx, t)
		if errors.Is(err, errConflict) {
			err = s.rereadTable(ctx)
		}
		if err != nil {
			s.announce() // the call lists no lanes: in an outage, the other instances divide this instance's lanes
			s.log.Warn("cannot remove this instance from the table of lanes; other instances do that within seconds",
				"err", err)
			return
		}
	}
	if s.rounds.beatSequence == 0 {
		return
	}
	if err := s.store.api.PurgeSubject(ctx, s.store.Stream, s.store.Beat+s.self.id); err != nil {
		s.log.Debug("cannot remove this instance's counter", "err", err)
	}
}
