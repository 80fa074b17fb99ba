package lease

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// handleFailure handles a failed round. A round that fails before the grace ends extends the grace: while the writes of
// this instance fail, the writes of other instances usually also fail. If only this instance has lost the stream, a
// lane may have two owners, which is better than no owner.
func (s *Shared) handleFailure(ctx context.Context, sent time.Time, err error) {
	if s.outage.start.IsZero() {
		s.outage.start = sent
	}
	g := s.grace.Load()
	switch {
	case errors.Is(err, errConflict): // the beat was stored, so the grace is renewed; only the table was not written
	case errors.Is(err, errFull) && s.readTable(ctx, false) == nil && s.view.hasTable:
		s.view.liveness.recordFailure()
		// The leader refuses all writes, so the table that was just read is the latest.
		s.reconcile(sent)
	default:
		s.view.liveness.recordFailure()
		// An instance that is alone and not connected may have missed a call. It stays stopped until it has read the table.
		if g.permits(s.at(time.Now()), g == nil || !g.alone || s.cfg.Connected()) {
			s.grace.Store(&grace{beatSentAt: g.beatSentAt, attemptStart: new(s.at(sent))})
		}
	}
	now := time.Now()
	s.ask(now)
	duration := now.Sub(s.outage.start)
	if duration >= livenessTimeout {
		s.mu.Lock()
		releases := slices.Clone(s.state.releases)
		s.mu.Unlock()
		s.endReleased(releases) // the other instances learn from calls that the lanes are free
	}
	// A leader that reports "no room" was elected, so there is no need to wait for an election.
	if duration >= outageTimeout || errors.Is(err, errFull) && duration >= livenessTimeout {
		s.divideByCalls(now)
	}
	s.recreate(ctx)
}

// recreate creates the stream if the stream is missing and this instance may create it.
func (s *Shared) recreate(ctx context.Context) {
	if s.cfg.Create == nil || ctx.Err() != nil || !s.store.conn.IsConnected() {
		return
	}
	if _, err := s.store.api.Last(ctx, s.store.Stream, s.store.Table); !errors.Is(err, jetstream.ErrStreamNotFound) {
		return
	}
	if err := s.cfg.Create(ctx); err != nil {
		s.log.Warn("cannot create the stream of the lanes' owners", "stream", s.store.Stream, "err", err)
		return
	}
	s.log.Warn("the stream of the lanes' owners was missing; created it again", "stream", s.store.Stream)
}

// divideByCalls divides the lanes without the stream. Every instance keeps the lanes that only its own calls list. A
// lane that no call lists goes to one of the instances whose calls arrive, by the usual shares. Two instances that do
// not receive each other's calls may own the same lanes, which is better than lanes without an owner.
func (s *Shared) divideByCalls(now time.Time) {
	t := s.tableFromCalls(now)
	share := shares(t, s.cfg.MaxOwners)
	if _, ok := s.outage.logLimit.Allow(alertInterval); ok {
		s.log.Error("the stream of the lanes' owners is unusable; instances divide the lanes by direct messages, and "+
			"messages may be delivered twice, under one id, until the stream is usable",
			"stream", s.store.Stream, "since", s.outage.start.UTC(), "instances", len(t.Instances))
	}
	s.grace.Store(&grace{beatSentAt: s.at(now)})
	var callbacks []func()
	s.mu.Lock()
	for lane, l := range s.state.leases {
		if owner := t.Lanes[lane].Instance; owner != s.self.id {
			s.log.Warn("another instance claims a lane of this instance; this instance gave up the lane",
				"stream", lane, "instance", owner)
			s.revoke(l)
			continue
		}
		l.denied.Store(false)
		l.tick(s.at(now))
	}
	for lane, w := range s.state.waiters {
		switch owner := t.Lanes[lane].Instance; {
		case owner != "":
			callbacks = append(callbacks, w.onStandby)
		case share[lane] == s.self.id && !s.state.leaving:
			l := s.newLease(lane, w)
			l.provisional, l.epoch = true, 0
		}
	}
	s.mu.Unlock()
	for _, callback := range callbacks {
		callback()
	}
}

// tableFromCalls returns a table of this instance and of the instances whose calls arrive, with the lanes that they
// report. If two instances claim a lane, the claim with the higher epoch wins or, with equal epochs, that of the lower
// id.
func (s *Shared) tableFromCalls(now time.Time) Table {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, epochs := Table{}.clone(), make(map[string]uint64)
	enter := func(id string, lanes []string) {
		t.Instances[id] = Instance{Joined: s.view.table.Instances[id].Joined, Lanes: lanes}
	}
	claim := func(id, lane string, epoch uint64) {
		owner, ownerEpoch := t.Lanes[lane].Instance, epochs[lane]
		if owner == "" || epoch > ownerEpoch || epoch == ownerEpoch && id < owner {
			t.Lanes[lane], epochs[lane] = Claim{Instance: id}, epoch
		}
	}
	enter(s.self.id, s.eligibleLanes())
	for lane, l := range s.state.leases {
		claim(s.self.id, lane, l.epoch)
	}
	for id, c := range s.state.calls {
		if now.Sub(c.at) < livenessTimeout {
			enter(id, c.EligibleLanes)
			for lane, epoch := range c.OwnedLanes {
				claim(id, lane, epoch)
			}
		}
	}
	return t
}
