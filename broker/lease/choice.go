package lease

import (
	"cmp"
	"context"
	"slices"
	"time"
)

const (
	// settleTime is the time for which an instance looks for an active one before it creates the first claim of a stream
	// that has stored messages before. If another instance knows a claim, the time is maxSettleTime.
	settleTime, maxSettleTime = 5 * time.Second, 15 * time.Second
	// rankDelay is the time for which a stand-by leaves a free claim to a better one.
	rankDelay = time.Second
	// yieldTimeout is the time after which the active instance yields although its loops have not ended.
	yieldTimeout = time.Second
)

// proposal returns the claim that this instance would write now; ok is false if it would write none.
func (m *Member) proposal(ctx context.Context, now time.Time, peers []caller) (c Claim, ok bool, err error) {
	m.mu.Lock()
	l, w, r := m.state.lease, m.state.waiter, m.state.release
	m.mu.Unlock()
	c = m.view.claim
	switch {
	case m.isActive() && r != nil:
		return c.released(r.cursors, now), true, nil
	case m.isActive() && (l != nil || w != nil):
		c.Alone = len(peers) == 0
		return c.renewed(now), true, nil
	case m.isActive():
		return c.released(nil, now), true, nil
	case r != nil, l == nil && w == nil, m.logState.olderExists:
		return c, false, nil
	case !m.view.known:
		if mayCreate, err := m.mayCreate(ctx, peers); err != nil || !mayCreate {
			return c, false, err
		}
	case c.Active.ID != "" && m.deathTime().After(m.view.readStart):
		m.view.vacant = time.Time{}
		return c, false, nil
	}
	if m.view.vacant.IsZero() {
		m.view.vacant = now
	}
	if actor := provisional(peers); l == nil && actor != "" { // it writes the claim as soon as the stream permits
		m.setActive(actor)
		return c, false, nil
	}
	if l == nil && !m.isBest(peers) && now.Sub(m.view.vacant) < rankDelay {
		return c, false, nil
	}
	return c.taken(m.self, now), true, nil
}

// provisional returns the id of an instance that acts without a claim, because it took over in an outage, or "".
func provisional(peers []caller) string {
	for _, p := range peers {
		if p.Acts && p.Provisional {
			return p.ID
		}
	}
	return ""
}

// mayCreate reports whether this instance may write the first claim. An active instance writes its claim back after a
// purge, or after a client's message has hidden it.
func (m *Member) mayCreate(ctx context.Context, peers []caller) (bool, error) {
	wait := settleTime
	for _, p := range peers {
		if p.Acts {
			return false, nil
		}
		if p.Epoch > 0 {
			wait = maxSettleTime
		}
	}
	if m.view.sequence == 0 && wait == settleTime {
		if unused, err := m.store.unused(ctx); err != nil || unused {
			return unused, err
		}
	}
	return m.view.readStart.Sub(m.view.since) >= wait, nil
}

// deathTime returns the time at which the active instance of the claim counts as dead, if this instance sees no new
// sign of life. A read that begins then, or later, proves it.
func (m *Member) deathTime() time.Time {
	if m.view.gaveUp {
		return m.view.readStart
	}
	if m.view.readStart.IsZero() { // unknown: other instances may have been unable to beat, too
		return time.Now().Add(livenessTimeout)
	}
	active := m.view.claim.Active
	at := m.view.since.Add(livenessTimeout)
	if m.sharesIdentity(active) && active.Started <= m.self.Started && !m.view.everAlive {
		if m.cfg.Locked && active.Name == "" {
			return m.view.readStart
		}
		at = m.view.since.Add(takeoverTimeout)
	}
	if silent, ok := m.silentSince(active.ID); ok {
		if m.view.since.After(silent) {
			silent = m.view.since
		}
		timeout := silenceTimeout
		if m.view.claim.Alone {
			timeout += aloneInterval - beatInterval
		}
		if fast := silent.Add(timeout); fast.Before(at) {
			at = fast
		}
	}
	return at
}

// isBest reports whether no other instance is a better choice than this stand-by: one that acts without a claim,
// because it took over in an outage, or a stand-by that is able, reads a newer format, or is older, in this order.
func (m *Member) isBest(peers []caller) bool {
	unable := m.cfg.Able(true) != nil
	return !slices.ContainsFunc(peers, func(p caller) bool {
		switch {
		case p.Acts && p.ID != m.view.claim.Active.ID:
			return true
		case !p.Waits:
			return false
		case p.Unable != unable:
			return unable
		}
		return cmp.Or(cmp.Compare(m.self.Format, p.Format), cmp.Compare(p.Started, m.self.Started),
			cmp.Compare(p.ID, m.self.ID)) < 0
	})
}

// checkAbility records since when this instance is unable to work.
func (m *Member) checkAbility(now time.Time) {
	switch err := m.cfg.Able(false); {
	case err == nil:
		m.beats.unableSince = time.Time{}
	case m.beats.unableSince.IsZero():
		m.beats.unableSince = now
		m.log.Warn("this instance cannot work; an instance that can takes over, if there is one", "err", err)
	}
}

// yield asks the holder of the lease to stop if a stand-by is a better choice: because this instance is unable, or
// because it has met a message of a newer format. It ends the lease if the holder does not stop in time, or if this
// instance could not write a release. Then only a call tells the others.
func (m *Member) yield(now time.Time, peers []caller) {
	m.mu.Lock()
	l := m.state.lease
	if l != nil {
		m.yieldLocked(l, now, peers)
	}
	ended := l != nil && m.state.lease == nil
	m.mu.Unlock()
	if ended {
		m.call(call{})
	}
}

// yieldLocked is yield with a lease. The caller holds the lock.
func (m *Member) yieldLocked(l *memberLease, now time.Time, peers []caller) {
	for _, p := range peers {
		if p.Acts && (!p.Provisional || l.epoch == 0 && p.ID < m.self.ID) && (p.Epoch > l.epoch || l.epoch == 0) {
			m.log.Warn("another instance is active; this one stops", "instance", p.ID)
			m.revoke(l)
			return
		}
		// The other instance must have called after the trouble began: the cause may be common to both.
		unable := !m.beats.unableSince.IsZero() && p.at.Sub(m.beats.unableSince) >= beatInterval
		better := p.Waits && !p.Unable && (unable || l.declined.Load() && p.Format > m.self.Format)
		if better && l.stopBy.IsZero() {
			m.log.Warn("this instance yields to another one that can do the work", "instance", p.ID)
			by := now.Add(yieldTimeout)
			if !m.outage.start.IsZero() {
				by = now
			}
			l.requestStop(by)
		}
	}
	if !l.stopBy.IsZero() && !now.Before(l.stopBy) {
		m.revoke(l)
		if m.state.release == nil {
			m.state.release = &release{done: make(chan struct{})}
		}
	}
}
