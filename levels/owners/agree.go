package owners

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
	// stableAfter is how long the same instances must be there before lanes move from one that lives to another.
	stableAfter = 5 * time.Second
	// namesakeAfter is how long a counter must stand still if it belonged to an earlier run of this very instance.
	namesakeAfter = time.Second
	// swaps is how often one round tries to write against others.
	swaps = 10
)

// agree brings the table and what is owned here together.
func (s *Shared) agree(ctx context.Context, sent time.Time) error {
	for range swaps {
		s.reconcile(sent)
		t, released := s.proposal(time.Now())
		if !t.equal(s.table) {
			err := s.write(ctx, t)
			if errors.Is(err, errConflict) {
				time.Sleep(rand.N(roundPause))
				err = s.follow(ctx, 0)
				if err == nil {
					continue
				}
			}
			if err != nil {
				return err
			}
		}
		s.finish(released)
		s.grant()
		s.handOver(time.Now())
		return nil
	}
	return errConflict
}

// reconcile ends the leases of lanes that are somebody else's now.
func (s *Shared) reconcile(sent time.Time) {
	before := s.standing.Load()
	s.mu.Lock()
	defer s.mu.Unlock()
	for lane, l := range s.leases {
		c, known := s.table.Lanes[lane]
		if known && (c.Instance != s.id || c.Epoch != l.epoch) {
			if c.Instance != "" {
				s.log.Warn("another instance has taken over a lane", "stream", lane, "instance", c.Instance)
			}
			s.lose(l)
		}
	}
	now := s.at(time.Now())
	lapsed := !before.good(now, true)
	s.standing.Store(&standing{since: s.at(sent)})
	for lane, l := range s.leases {
		if l.owes.stuck(now) && len(l.beats) > 0 {
			s.log.Error("the loop of a lane does not turn; giving it up", "stream", lane)
			s.lose(l)
			continue
		}
		if lapsed || s.company() {
			l.beat(now)
		}
	}
}

// lose is called under the lock.
func (s *Shared) lose(l *shared) {
	l.lose()
	delete(s.leases, l.lane)
}

// company reports whether anybody else may be there.
func (s *Shared) company() bool {
	return len(s.others(s.table)) > 0 || len(s.roster.seen) > 0 ||
		time.Since(s.base)-time.Duration(s.heard.Load()) < lostAfter
}

func (s *Shared) others(t Table) []string {
	return slices.DeleteFunc(t.members(), func(id string) bool { return id == s.id })
}

// proposal is the table as it should be by what is known here, and the releases that are in it.
func (s *Shared) proposal(now time.Time) (Table, []*release) {
	t := s.table.clone()
	for _, id := range s.others(t) {
		if s.roster.still(id) >= s.patience(t.Instances[id]) {
			t.drop(id)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var lanes []string
	for lane := range s.waiters {
		lanes = append(lanes, lane)
	}
	for lane, l := range s.leases {
		if _, known := t.Lanes[lane]; !known {
			t.claim(lane, s.id) // somebody removed the table
			l.epoch = t.Lanes[lane].Epoch
		}
		lanes = append(lanes, lane)
	}
	released := slices.Clone(s.releases)
	for _, r := range released {
		if s.leases[r.lease.lane] == r.lease {
			t.free(r.lease.lane, r.at)
		}
	}
	for lane, c := range t.Lanes {
		if c.Instance == s.id && s.leases[lane] == nil && s.waiters[lane] == nil {
			t.free(lane, Cursor{})
		}
	}
	if s.leaving {
		lanes = nil
	}
	slices.Sort(lanes)
	t.join(s.id, s.cfg.Name, slices.Compact(lanes))
	for lane, id := range shares(t, s.cfg.MaxOwners) {
		c, known := t.Lanes[lane]
		if id == s.id && c.Instance == "" && s.waiters[lane] != nil && (known || s.mayFound(t, now)) {
			t.claim(lane, s.id)
		}
	}
	return t, released
}

// patience is how long an instance's counter may stand still.
func (s *Shared) patience(i Instance) time.Duration {
	if i.Name != "" && i.Name == s.cfg.Name {
		return namesakeAfter
	}
	return lostAfter
}

// mayFound reports whether a lane that is in no table may be claimed: others may own it and be about to say so.
func (s *Shared) mayFound(t Table, now time.Time) bool {
	return now.Sub(s.stable) >= stableAfter || !s.rewritten && len(t.Instances) == 1
}

// write replaces the table, and tells the others to look.
func (s *Shared) write(ctx context.Context, t Table) error {
	body, err := json.Marshal(t)
	if err != nil {
		return fmt.Errorf("bug: encode the table of lanes: %w", err)
	}
	seq, err := s.bucket.swap(ctx, s.bucket.Table, body, s.revision)
	if err != nil {
		return err
	}
	for _, id := range s.others(s.table) {
		if _, stays := t.Instances[id]; !stays {
			s.log.Warn("an instance has stopped; others take over its lanes", "instance", id, "still", s.roster.still(id).Round(time.Millisecond))
		}
	}
	s.adopt(t, seq, time.Now())
	s.call()
	return nil
}

func (s *Shared) call() {
	if err := s.bucket.conn.Publish(s.bucket.Call, []byte(s.id)); err != nil {
		s.log.Debug("calling the other instances", "err", err)
	}
}

// finish ends the leases that are released.
func (s *Shared) finish(released []*release) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range released {
		if s.leases[r.lease.lane] == r.lease {
			s.lose(r.lease)
		}
		close(r.done)
	}
	s.releases = slices.DeleteFunc(s.releases, func(r *release) bool { return slices.Contains(released, r) })
}

// grant hands out what the table says is ours, and tells those who wait for what is another's.
func (s *Shared) grant() {
	var waiting []func()
	s.mu.Lock()
	for lane, w := range s.waiters {
		switch c := s.table.Lanes[lane]; {
		case c.Instance == s.id && s.leases[lane] == nil:
			l := &shared{
				of: s, lane: lane, from: Cursor{Next: c.Next, Created: c.Created}, epoch: c.Epoch,
				beats: make(chan struct{}, 1), done: make(chan struct{}),
			}
			s.leases[lane] = l
			w.got <- l
			delete(s.waiters, lane)
		case s.roster.lives(c.Instance):
			waiting = append(waiting, w.waiting)
		}
	}
	s.mu.Unlock()
	for _, f := range waiting {
		f()
	}
}

// handOver asks the owners here to give up what should be another's. The lane is free, and the other's, when they have
// released it.
func (s *Shared) handOver(now time.Time) {
	if now.Sub(s.stable) < stableAfter {
		return
	}
	share := shares(s.table, s.cfg.MaxOwners)
	s.mu.Lock()
	defer s.mu.Unlock()
	for lane, l := range s.leases {
		if to := share[lane]; to != s.id && s.roster.lives(to) && !l.ended {
			s.log.Info("handing a lane over", "stream", lane, "to", to)
			l.end()
		}
	}
}
