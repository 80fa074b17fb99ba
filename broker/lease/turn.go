package lease

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/ratelog"
)

const (
	// turnPause is the minimum time between two turns, even with many calls.
	turnPause = 2 * time.Millisecond
	// retryInterval is the pause after a failed turn, unless the stream is full.
	retryInterval = 250 * time.Millisecond
	// offlineInterval is the interval at which an instance without a connection checks the connection, in case nats.go
	// does not report that the connection is up again.
	offlineInterval = 5 * time.Second
	// maxWrites is the maximum number of successive attempts to write the claim. An attempt fails if another message was
	// stored on the claim's subject since the read, and a client may store a hundred such messages a second.
	maxWrites = 30
)

// turn is one iteration of Run. It returns the maximum time until the next turn.
func (m *Member) turn(ctx context.Context, woken bool) time.Duration {
	now := time.Now()
	if wait := m.beats.nextAt.Sub(now); wait > 0 && !woken {
		return wait
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	m.interrupt.Store(&cancel)
	peers := m.livePeers(now)
	m.checkIdentities(peers)
	m.checkAbility(now)
	m.yield(now, peers)
	if m.lostAt.Load() != nil {
		m.view.readStart, m.view.blindFrom, m.outage.start = time.Time{}, time.Time{}, time.Time{}
		return m.next(now, offlineInterval)
	}
	err := m.agree(ctx, peers)
	frozen := err != nil && m.isFrozen(ctx, err)
	if !frozen { // otherwise this instance could stay the active one although nobody hears it
		m.callPeers(now, peers, err != nil || m.view.hidden || !m.view.everAlive && !m.isActive())
	}
	if err != nil {
		if context.Cause(ctx) != nil {
			return m.next(now, turnPause)
		}
		m.fail(ctx, now, err, peers, frozen)
		m.checkAbility(time.Now()) // the turn may have taken seconds
		m.yield(time.Now(), m.livePeers(time.Now()))
		m.logState.turns.report(m.log, err)
		if errors.Is(err, errFull) {
			return m.next(now, beatInterval)
		}
		return m.next(now, retryInterval)
	}
	m.outage.start = time.Time{}
	m.outage.logLimit.Reset()
	m.logState.turns.report(m.log, nil)
	return m.next(now, m.interval(now, peers))
}

// next sets the time of the next turn, and returns the time until then.
func (m *Member) next(now time.Time, interval time.Duration) time.Duration {
	m.beats.nextAt = now.Add(interval)
	return max(time.Until(m.beats.nextAt), turnPause)
}

// interval returns the time from the start of a successful turn to the next turn.
func (m *Member) interval(now time.Time, peers []caller) time.Duration {
	switch at := m.deathTime(); {
	case m.isActive() && len(peers) == 0:
		return aloneInterval
	case !m.isActive() && at.After(now):
		return min(beatInterval, at.Sub(now))
	}
	return beatInterval
}

// isActive reports whether the claim names this instance.
func (m *Member) isActive() bool { return m.view.known && m.view.claim.Active.ID == m.self.ID }

// agree brings this instance and the claim into agreement. A stand-by reads the claim. It writes a new claim if no live
// instance is active. The active instance writes the claim without a read: if the claim has changed, the write fails.
func (m *Member) agree(ctx context.Context, peers []caller) error {
	for n := range maxWrites {
		if n > 0 || !m.isActive() {
			if n > 0 {
				time.Sleep(rand.N(turnPause)) // separates instances that write at the same time
			}
			if err := m.read(ctx, peers); err != nil {
				return err
			}
		}
		m.reconcile(peers)
		sent := time.Now()
		next, ok, err := m.proposal(ctx, sent, peers)
		if err != nil {
			return err
		}
		if ok {
			if err := m.write(ctx, next); errors.Is(err, errConflict) {
				continue
			} else if err != nil {
				return err
			}
			if m.isActive() {
				m.extendGrace(&grace{beatSentAt: m.at(sent)})
			}
		}
		m.settle(peers)
		return nil
	}
	return errConflict
}

// read reads the claim. If the stored message is not a claim, has no valid seal, or is an old claim, read uses only its
// sequence, which the next write must name. The last good claim stays the current one.
func (m *Member) read(ctx context.Context, peers []caller) error {
	start := time.Now()
	msg, ours, err := m.store.lastMessage(ctx, m.store.Claim)
	if err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
		return err
	}
	now := time.Now()
	switch {
	case err != nil:
		m.view.sequence, m.view.hidden = 0, m.view.known // not written yet, or purged
	case msg.Sequence != m.view.sequence:
		m.view.sequence = msg.Sequence
		c, err := ParseClaim(msg.Data)
		m.view.hidden = !ours || err != nil || m.view.known && !c.supersedes(m.view.claim)
		if !m.view.hidden {
			m.adopt(c, now)
		} else if _, ok := m.logState.claim.Allow(ratelog.Interval); ok {
			m.log.Warn("the stored claim of the active instance is invalid or outdated; this instance ignores it. "+
				"Probably a client, or a broker with another secret, stored it",
				"stream", m.store.Stream, "sequence", msg.Sequence, "sealed", ours, "err", err)
		}
	}
	switch {
	case !m.view.readStart.IsZero():
	case m.view.blindFrom.IsZero(): // the first read, or the first one after a failure
		m.view.since = now
	default: // the time in which this instance saw no beats does not count
		m.view.since = m.view.since.Add(now.Sub(m.view.blindFrom))
	}
	m.view.readStart, m.view.blindFrom = start, time.Time{}
	for _, p := range peers {
		if m.view.known && p.ID == m.view.claim.Active.ID {
			m.view.hear(p)
		}
	}
	return nil
}

// hear records the last call of the active instance.
func (v *view) hear(p caller) {
	v.everAlive = true
	switch {
	case p.Acts:
		v.acted, v.gaveUp = true, false
		if p.at.After(v.since) {
			v.since = p.at
		}
	case v.acted && p.Epoch == v.claim.Epoch:
		v.gaveUp = true
	}
}

// adopt makes a claim the current one.
func (m *Member) adopt(c Claim, now time.Time) {
	v := &m.view
	same := v.known && v.claim.Active.ID == c.Active.ID
	if !same || c.Version > v.claim.Version {
		v.since = now
	}
	v.everAlive = same && (v.everAlive || c.Version > v.claim.Version)
	if !same || c.Epoch > v.claim.Epoch {
		v.acted, v.gaveUp = false, false
	}
	v.claim, v.known = c, true
	if c.Active.ID != "" {
		v.vacant = time.Time{}
	}
	m.watchFor(c.Active.ID)
	m.setActive(c.Active.ID)
}

func (m *Member) setActive(id string) {
	m.mu.Lock()
	m.state.active = id
	m.mu.Unlock()
}

// write replaces the claim.
func (m *Member) write(ctx context.Context, c Claim) error {
	body, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("bug: encode the claim: %w", err)
	}
	sequence, err := m.store.swap(ctx, m.store.Claim, body, m.view.sequence)
	if err != nil {
		return err
	}
	if m.view.known && c.Active.ID == m.self.ID && m.view.claim.Active.ID != c.Active.ID {
		m.log.Info("this instance takes over", "from", m.view.claim.Active.ID, "epoch", c.Epoch,
			"silent_for", max(0, m.view.readStart.Sub(m.view.since)).Round(time.Millisecond))
	}
	m.view.sequence, m.view.hidden = sequence, false
	m.adopt(c, time.Now())
	return nil
}

// reconcile ends a lease that contradicts the claim. A lease that was taken in an outage, without a claim, ends if the
// active instance of the claim is alive and acts.
func (m *Member) reconcile(peers []caller) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l, c := m.state.lease, m.view.claim
	switch {
	case l == nil:
	case l.epoch == 0:
		for _, p := range peers {
			if p.ID == c.Active.ID && p.Acts {
				m.log.Warn("this instance gives up the activity that it took in an outage: another one is active", "instance", p.ID)
				m.revoke(l)
				return
			}
		}
	case m.view.known && (c.Active.ID != m.self.ID || c.Epoch != l.epoch):
		m.log.Warn("another instance has taken over", "instance", c.Active.ID, "epoch", c.Epoch)
		m.revoke(l)
	}
}

// revoke ends a lease immediately: from now on, Held returns false. The caller holds the lock.
func (m *Member) revoke(l *memberLease) {
	l.revoked.Store(true)
	l.requestStop(time.Now())
	m.state.lease = nil
}

// settle grants a lease if the claim names this instance, and ends a release that the claim shows. It calls onStandby
// if another instance is active that has ever shown a sign of life, or one acts without a claim.
func (m *Member) settle(peers []caller) {
	var callback func()
	m.mu.Lock()
	before, active := m.state.lease, m.isActive()
	switch l := m.state.lease; {
	case active && l != nil:
		l.epoch = m.view.claim.Epoch // also of a lease that was taken in an outage
	case active && m.state.waiter != nil:
		m.grant(m.view.claim.Epoch)
	case !active && m.state.release != nil:
		m.endRelease()
	case !active && m.state.waiter != nil && (m.view.everAlive || provisional(peers) != ""):
		callback = m.state.waiter.onStandby
	}
	changed := m.state.lease != before
	m.mu.Unlock()
	if callback != nil {
		callback()
	}
	if changed {
		m.call(call{})
	}
}

// grant gives a lease to the waiter. The caller holds the lock.
func (m *Member) grant(epoch uint64) {
	l := &memberLease{
		member: m, epoch: epoch, cursors: m.view.claim.Cursors, done: make(chan struct{}), resumed: make(chan struct{}, 1),
	}
	m.state.lease = l
	m.state.waiter.lease <- l
	m.state.waiter = nil
}

// endRelease ends the lease that a release gives up. The caller holds the lock.
func (m *Member) endRelease() {
	if m.state.lease != nil {
		m.revoke(m.state.lease)
	}
	close(m.state.release.done)
	m.state.release = nil
}

// extendGrace renews the grace, and tells the holder of the lease if it was denied an action in the meantime.
func (m *Member) extendGrace(g *grace) {
	lapsed := !m.permitted()
	m.grace.Store(g)
	m.mu.Lock()
	defer m.mu.Unlock()
	if l := m.state.lease; l != nil && (l.denied.Swap(false) || lapsed) {
		l.resume()
	}
}
