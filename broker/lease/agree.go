package lease

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"
)

const (
	// stableAfter is how long the same instances must be there before lanes move from one that lives to another.
	stableAfter = 5 * time.Second
	// swaps is how often one round tries to write against others. A client that has a hundred messages a second put in the
	// place of the table is faster now and then.
	swaps = 30
)

// agree brings the table and what is owned here together.
func (s *Shared) agree(ctx context.Context, sent time.Time) error {
	for range swaps {
		s.reconcile(sent)
		s.namesakes()
		if !s.known && !s.mayBegin() {
			s.ask(time.Now())
			return nil
		}
		t, released := s.proposal(time.Now())
		if s.garbled || !t.equal(s.table) {
			err := s.write(ctx, t)
			if errors.Is(err, errConflict) {
				time.Sleep(rand.N(roundPause))
				err = s.readTable(ctx, true)
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
		if l.assumed {
			switch {
			case c.Instance == s.id:
				l.assumed, l.epoch = false, c.Epoch
			case s.roster.livesNow(c.Instance, time.Now()) && !s.disowns(c.Instance, lane):
				s.log.Warn("a lane that was taken without the table has an owner", "stream", lane, "instance", c.Instance)
				s.lose(l)
			}
			continue
		}
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
		if l.denied.Swap(false) || lapsed || s.company() {
			l.beat(now)
		}
	}
}

// disowns reports whether the owner of a lane in the table said lately that it has not got it. It is called under the
// lock.
func (s *Shared) disowns(id, lane string) bool {
	w, said := s.spoken[id]
	_, has := w.Owns[lane]
	return said && !has && time.Since(w.at) < lostAfter
}

// lose is called under the lock.
func (s *Shared) lose(l *shared) {
	l.lose()
	delete(s.leases, l.lane)
}

// company reports whether anybody else may be there.
func (s *Shared) company() bool {
	return len(s.others(s.table)) > 0 || !s.sweepAt.IsZero() ||
		time.Since(s.base)-time.Duration(s.heard.Load()) < lostAfter
}

func (s *Shared) others(t Table) []string {
	return slices.DeleteFunc(t.members(), func(id string) bool { return id == s.id })
}

// proposal is the table as it should be by what is known here, and the releases that are in it.
func (s *Shared) proposal(now time.Time) (Table, []*release) {
	t := s.table.clone()
	for _, id := range s.others(t) {
		if s.gone(id, t.Instances[id]) {
			t.drop(id)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for lane, l := range s.leases {
		switch c, known := t.Lanes[lane]; {
		case l.assumed && c.Instance == "":
			t.claim(lane, s.id)
		case !l.assumed && !known: // the table was founded anew
			t.claim(lane, s.id)
			l.epoch = t.Lanes[lane].Epoch
		}
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
	t.join(s.id, Instance{Name: s.cfg.Name, Place: s.place, Started: s.started, Lanes: s.wants()})
	for lane, id := range shares(t, s.cfg.MaxOwners) {
		c, known := t.Lanes[lane]
		if id == s.id && c.Instance == "" && s.waiters[lane] != nil && (known || s.mayFound(t, now)) {
			t.claim(lane, s.id)
		}
	}
	return t, released
}

// wants are the lanes that this instance would work, sorted. It is called under the lock.
func (s *Shared) wants() []string {
	if s.leaving {
		return nil
	}
	lanes := slices.AppendSeq(slices.Collect(maps.Keys(s.waiters)), maps.Keys(s.leases))
	slices.Sort(lanes)
	return slices.Compact(lanes)
}

// mayBegin reports whether a table may be founded where none is. Ours is the first message of the stream, or whoever
// knows one has had the time to write it back. One that is founded too early takes nothing from anybody: see mayFound.
func (s *Shared) mayBegin() bool {
	heard := time.Since(s.base) - time.Duration(s.knower.Load())
	if waited := time.Since(s.base); s.stored > 1 &&
		(waited < stableAfter || heard < stableAfter && waited < 3*stableAfter) {
		return false
	}
	s.known, s.rewritten, s.stable = true, s.rewritten || s.stored > 1, time.Now()
	return true
}

// mayFound reports whether a lane that is in no table may be claimed: others may own it and be about to say so.
func (s *Shared) mayFound(t Table, now time.Time) bool {
	return now.Sub(s.stable) >= stableAfter || !s.rewritten && len(t.Instances) == 1
}

// write replaces the table, and tells the others to look.
func (s *Shared) write(ctx context.Context, t Table) error {
	t.Replaces = s.last
	if !t.equal(s.table) {
		t.Version = max(s.table.Version+1, uint64(time.Now().UnixMilli()))
	}
	body, err := json.Marshal(t)
	if err != nil {
		return fmt.Errorf("bug: encode the table of lanes: %w", err)
	}
	seq, err := s.bucket.swap(ctx, s.bucket.Table, body, s.last)
	if err != nil {
		return err
	}
	for _, id := range s.others(s.table) {
		if _, stays := t.Instances[id]; !stays {
			s.log.Warn("an instance has stopped; others take over its lanes", "instance", id,
				"still", s.roster.still(id).Round(time.Millisecond))
		}
	}
	s.last, s.garbled = seq, false
	s.adopt(t, time.Now())
	s.call()
	return nil
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
			s.give(lane, w)
		case s.roster.lives(c.Instance):
			waiting = append(waiting, w.waiting)
		}
	}
	s.mu.Unlock()
	for _, f := range waiting {
		f()
	}
}

// give makes a lease by what the table says of a lane. It is called under the lock.
func (s *Shared) give(lane string, w *waiter) *shared {
	c := s.table.Lanes[lane]
	l := &shared{
		of: s, lane: lane, from: Cursor{Next: c.Next, Created: c.Created}, epoch: c.Epoch,
		beats: make(chan struct{}, 1), done: make(chan struct{}),
	}
	s.leases[lane] = l
	w.got <- l
	delete(s.waiters, lane)
	return l
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
		if to := share[lane]; to != s.id && s.roster.livesNow(to, now) && !l.ended && !l.assumed {
			s.log.Info("handing a lane over", "stream", lane, "to", to)
			l.end()
		}
	}
}
