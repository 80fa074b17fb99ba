package lease

import (
	"maps"
	"slices"
	"time"
)

// others returns the instances of a table except this one.
func (s *Shared) others(t Table) []string {
	return slices.DeleteFunc(t.members(), func(id string) bool { return id == s.self.id })
}

// proposal returns the table that this instance would write. In this table, the lanes of the releases in progress are
// free. Proposal also returns these releases.
func (s *Shared) proposal(now time.Time) (Table, []*release) {
	t := s.view.table.clone()
	for _, id := range s.others(t) {
		if s.isDead(id, t.Instances[id]) {
			t.drop(id)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for lane, l := range s.local.leases {
		switch c, known := t.Lanes[lane]; {
		case l.fromCalls && c.Instance == "":
			t.claim(lane, s.self.id)
		case !l.fromCalls && !known: // the table was created again, without this claim
			t.claim(lane, s.self.id)
			l.epoch = t.Lanes[lane].Epoch
		}
	}
	released := slices.Clone(s.local.releases)
	for _, r := range released {
		if s.local.leases[r.lease.lane] == r.lease {
			t.free(r.lease.lane, r.at)
		}
	}
	for lane, c := range t.Lanes {
		if c.Instance == s.self.id && s.local.leases[lane] == nil && s.local.waiters[lane] == nil {
			t.free(lane, Cursor{})
		}
	}
	t.join(s.self.id, Instance{
		Name: s.cfg.Name, Place: s.self.place, Started: s.self.started, Lanes: s.wants(), Format: s.cfg.Format,
	})
	for lane, id := range shares(t, s.cfg.MaxOwners) {
		c, known := t.Lanes[lane]
		if id == s.self.id && c.Instance == "" && s.local.waiters[lane] != nil && (known || s.mayClaimNew(t, now)) {
			t.claim(lane, s.self.id)
		}
	}
	return t, released
}

// wants returns the lanes that this instance can own, sorted. It leaves out a declined lane while an instance of a
// newer format can own it. The caller holds the lock.
func (s *Shared) wants() []string {
	if s.local.leaving {
		return nil
	}
	lanes := slices.AppendSeq(slices.Collect(maps.Keys(s.local.waiters)), maps.Keys(s.local.leases))
	lanes = slices.DeleteFunc(lanes, func(lane string) bool { return s.local.declined[lane] && s.newerCanOwn(lane) })
	slices.Sort(lanes)
	return slices.Compact(lanes)
}

// newerCanOwn reports whether an instance of a newer format can own a lane.
func (s *Shared) newerCanOwn(lane string) bool {
	for _, i := range s.view.table.Instances {
		if i.Format > s.cfg.Format && slices.Contains(i.Lanes, lane) {
			return true
		}
	}
	return false
}

// createTable makes an empty table the current table, and reports whether it did. It does so immediately if this
// instance's counter is the first message of the stream. If another message was stored before, createTable first gives
// other instances the time to write back a table that they know. A table that is created too early takes no lane from
// its owner: see mayClaimNew.
func (s *Shared) createTable() bool {
	waited := time.Since(s.self.base)
	quiet := waited - time.Duration(s.received.informed.Load()) // time since a call of an instance that knows the table
	if s.rounds.stored > 1 && (waited < stableAfter || quiet < stableAfter && waited < 3*stableAfter) {
		return false
	}
	s.view.known, s.view.rewritten, s.view.membersChanged = true, s.view.rewritten || s.rounds.stored > 1, time.Now()
	return true
}

// mayClaimNew reports whether this instance may claim a lane that is not in the table. It may not while another
// instance may own the lane without having entered the lane in the table yet.
func (s *Shared) mayClaimNew(t Table, now time.Time) bool {
	return now.Sub(s.view.membersChanged) >= stableAfter || !s.view.rewritten && len(t.Instances) == 1
}
