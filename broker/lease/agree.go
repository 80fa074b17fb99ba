package lease

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

const (
	// stabilityTime is the time for which the set of instances must not change before a lane moves between live
	// instances.
	stabilityTime = 5 * time.Second
	// maxWrites is the maximum number of successive attempts to write the table. An attempt fails if another message was
	// stored on the table's subject since the read, and a client may store a hundred such messages a second.
	maxWrites = 30
)

// agree ends the leases that contradict the table, writes this instance's changes into the table, and then grants the
// lanes that the table gives to this instance. If there is no table, and createTable must still wait, agree writes and
// grants nothing.
func (s *Shared) agree(ctx context.Context, sent time.Time) error {
	for range maxWrites {
		s.reconcile(sent)
		s.checkIdentities()
		if !s.view.hasTable && !s.createTable() {
			s.ask(time.Now())
			return nil
		}
		t, releases := s.proposal(time.Now())
		if s.view.needsRewrite || !t.equal(s.view.table) {
			err := s.write(ctx, t)
			if errors.Is(err, errConflict) {
				if err = s.rereadTable(ctx); err == nil {
					continue
				}
			}
			if err != nil {
				return err
			}
		}
		s.endReleased(releases)
		s.grant()
		s.handOver(time.Now())
		return nil
	}
	return errConflict
}

// rereadTable waits for a short random time, and reads the table. The random time separates instances that write at the
// same time.
func (s *Shared) rereadTable(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(rand.N(roundPause)):
		return s.readTable(ctx, true)
	}
}

// reconcile ends the leases that contradict the table, and renews the grace, which then counts from sent, the start of
// the round. A provisional lease (taken in an outage) ends only if the lane's owner in the table is alive and does not
// disown the lane. Then reconcile ends the leases of stuck workers. It sends a tick to the other workers if there are
// other instances, or if the grace had ended. It also sends a tick to each worker whose Held has returned false.
func (s *Shared) reconcile(sent time.Time) {
	previous := s.grace.Load()
	s.mu.Lock()
	defer s.mu.Unlock()
	for lane, l := range s.state.leases {
		c, known := s.view.table.Lanes[lane]
		if l.provisional {
			switch {
			case c.Instance == s.self.id:
				l.provisional, l.epoch = false, c.Epoch
			case s.view.liveness.alive(c.Instance, time.Now()) && !s.disowns(c.Instance, lane):
				s.log.Warn("this instance gave up a lane that it took in an outage; another live instance owns the lane",
					"stream", lane, "instance", c.Instance)
				s.revoke(l)
			}
			continue
		}
		if known && (c.Instance != s.self.id || c.Epoch != l.epoch) {
			if c.Instance != "" {
				s.log.Warn("another instance has taken over a lane", "stream", lane, "instance", c.Instance)
			}
			s.revoke(l)
		}
	}
	now := s.at(time.Now())
	lapsed := !previous.permits(now, true)
	s.grace.Store(&grace{beatSentAt: s.at(sent)})
	for lane, l := range s.state.leases {
		if l.stuck(now) {
			s.log.Error("the worker of a lane is stuck; this instance gave up the lane", "stream", lane)
			s.revoke(l)
			continue
		}
		if l.denied.Swap(false) || lapsed || s.hasPeers() {
			l.tick(now)
		}
	}
}

// disowns reports whether the last call of an instance is younger than livenessTimeout and does not list the lane. The
// caller holds the lock.
func (s *Shared) disowns(id, lane string) bool {
	c, known := s.state.calls[id]
	_, listed := c.OwnedLanes[lane]
	return known && !listed && time.Since(c.at) < livenessTimeout
}

// revoke ends a lease immediately: from now on, Held returns false. The caller holds the lock.
func (s *Shared) revoke(l *sharedLease) {
	l.revoked.Store(true)
	l.requestStop()
	delete(s.state.leases, l.lane)
}

// hasPeers reports whether other instances could be running.
func (s *Shared) hasPeers() bool {
	return len(s.otherMembers(s.view.table)) > 0 || !s.rounds.sweepAt.IsZero() ||
		time.Since(s.self.base)-time.Duration(s.callState.last.Load()) < livenessTimeout
}

// write replaces the table and announces the change.
func (s *Shared) write(ctx context.Context, t Table) error {
	t.Replaces = s.view.sequence
	if !t.equal(s.view.table) {
		t.Version = max(s.view.table.Version+1, uint64(time.Now().UnixMilli()))
	}
	body, err := json.Marshal(t)
	if err != nil {
		return fmt.Errorf("bug: encode the table of lanes: %w", err)
	}
	seq, err := s.store.swap(ctx, s.store.Table, body, s.view.sequence)
	if err != nil {
		return err
	}
	for _, id := range s.otherMembers(s.view.table) {
		if _, stays := t.Instances[id]; !stays {
			s.log.Warn("an instance has stopped; others take over its lanes", "instance", id,
				"silent_for", s.view.liveness.unchangedFor(id).Round(time.Millisecond))
		}
	}
	s.view.sequence, s.view.needsRewrite = seq, false
	s.adopt(t, time.Now())
	s.announce()
	return nil
}

// endReleased ends the leases that the releases give up. The table already shows that the lanes are free. In an outage,
// the other instances learn this from the next call of this instance, which does not list the lanes.
func (s *Shared) endReleased(releases []*release) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range releases {
		if s.state.leases[r.lease.lane] == r.lease {
			s.revoke(r.lease)
		}
		close(r.done)
	}
	s.state.releases = slices.DeleteFunc(s.state.releases, func(r *release) bool { return slices.Contains(releases, r) })
}

// grant gives leases to the waiters whose lanes the table gives to this instance. If the owner of a waiter's lane is
// another instance that has ever shown a sign of life, grant calls the waiter's onStandby.
func (s *Shared) grant() {
	var callbacks []func()
	s.mu.Lock()
	for lane, w := range s.state.waiters {
		switch c := s.view.table.Lanes[lane]; {
		case c.Instance == s.self.id && s.state.leases[lane] == nil:
			s.newLease(lane, w)
		case s.view.liveness.everAlive(c.Instance):
			callbacks = append(callbacks, w.onStandby)
		}
	}
	s.mu.Unlock()
	for _, callback := range callbacks {
		callback()
	}
}

// newLease gives a lease to a waiter, with the cursor and the epoch of the lane's claim. The caller holds the lock.
func (s *Shared) newLease(lane string, w *waiter) *sharedLease {
	c := s.view.table.Lanes[lane]
	l := &sharedLease{
		shared: s, lane: lane, cursor: Cursor{Next: c.Next, Created: c.Created}, epoch: c.Epoch,
		ticks: make(chan struct{}, 1), done: make(chan struct{}),
	}
	s.state.leases[lane] = l
	w.lease <- l
	delete(s.state.waiters, lane)
	return l
}

// handOver asks the workers to release the lanes that belong to the share of another live instance, if the set of
// instances has been the same for stabilityTime. A lane stays with this instance until its worker releases it.
func (s *Shared) handOver(now time.Time) {
	if now.Sub(s.view.membersChanged) < stabilityTime {
		return
	}
	share, moves := shares(s.view.table, s.cfg.MaxOwners), 0
	s.mu.Lock()
	defer s.mu.Unlock()
	for lane, l := range s.state.leases {
		if l.stopRequested || l.provisional {
			continue
		}
		if owner := share[lane]; owner != s.self.id && s.view.liveness.alive(owner, now) {
			s.log.Debug("handing a lane over", "stream", lane, "to", owner)
			l.requestStop()
			moves++
		}
	}
	if moves > 0 {
		s.log.Info("handing lanes over to other instances", "lanes", moves, "keeping", len(s.state.leases)-moves)
	}
}
