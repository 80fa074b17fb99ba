package lease

import (
	"maps"
	"slices"
	"time"
)

// otherMembers returns the other instances of a table.
func (s *Shared) otherMembers(t Table) []string {
	return slices.DeleteFunc(t.members(), func(id string) bool { return id == s.self.id })
}

// proposal returns the table that this instance would write. In this table, the lanes of the releases in progress are
// free. Proposal also returns these releases.
func (s *Shared) proposal(now time.Time) (Table, []*release) {
	t := s.view.table.clone()
	for _, id := range s.otherMembers(t) {
		if s.isDead(id, t.Instances[id]) {
			t.drop(id)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for lane, l := range s.state.leases {
		switch c, known := t.Lanes[lane]; {
		case l.provisional && c.Instance == "":
			t.claim(lane, s.self.id)
		case !l.provisional && !known: // the table was created again, without this claim
			t.claim(lane, s.self.id)
			l.epoch = t.Lanes[lane].Epoch
		}
	}
	releases := slices.Clone(s.state.releases)
	for _, r := range releases {
		if s.state.leases[r.lease.lane] == r.lease {
			t.free(r.lease.lane, r.cursor)
		}
	}
	for lane, c := range t.Lanes {
		if c.Instance == s.self.id && s.state.leases[lane] == nil && s.state.waiters[lane] == nil {
			t.free(lane, Cursor{})
		}
	}
	t.join(s.self.id, Instance{
		Name: s.cfg.Name, Place: s.self.place, Started: s.self.started, Lanes: s.eligibleLanes(), Format: s.cfg.Format,
	})
	for lane, id := range shares(t, s.cfg.MaxOwners) {
		c, known := t.Lanes[lane]
		if id == s.self.id && c.Instance == "" && s.state.waiters[lane] != nil && (known || s.mayClaimNew(t, now)) {
			t.claim(lane, s.self.id)
		}
	}
	return t, releases
}

// eligibleLanes returns the lanes that this instance can own, sorted: none while it is leaving, and no declined lane
// that an instance of a newer format can own. The caller holds the lock.
func (s *Shared) eligibleLanes() []string {
	if s.state.leaving {
		return nil
	}
	lanes := slices.AppendSeq(slices.Collect(maps.Keys(s.state.waiters)), maps.Keys(s.state.leases))
	lanes = slices.DeleteFunc(lanes, func(lane string) bool { return s.state.declinedLanes[lane] && s.newerCanOwn(lane) })
	slices.Sort(lanes)
	return slices.Compact(lanes)
}

func (s *Shared) newerCanOwn(lane string) bool {
	for _, i := range s.view.table.Instances {
		if i.Format > s.cfg.Format && slices.Contains(i.Lanes, lane) {
			return true
		}
	}
	return false
}

// createTable makes an empty table the current table, and reports success. It always succeeds if this instance's
// counter is the first message of the stream. Otherwise it fails until other instances have had time to write back a
// table that they have. A table that is created too early takes no lane from its owner: see mayClaimNew.
func (s *Shared) createTable() bool {
	age := time.Since(s.self.base)
	silence := age - time.Duration(s.callState.lastInformed.Load()) // of the instances that have the table
	if s.rounds.beatSequence > 1 && (age < stabilityTime || silence < stabilityTime && age < 3*stabilityTime) {
		return false
	}
	s.view.hasTable, s.view.membersChanged = true, time.Now()
	s.view.rewritten = s.view.rewritten || s.rounds.beatSequence > 1
	return true
}

// mayClaimNew reports whether this instance may claim a lane that is not in the table. It returns false while another
// instance could own the lane without a claim in the table.
func (s *Shared) mayClaimNew(t Table, now time.Time) bool {
	return now.Sub(s.view.membersChanged) >= stabilityTime || !s.view.rewritten && len(t.Instances) == 1
}
