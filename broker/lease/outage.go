package lease

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// fail handles a failed turn. A turn of the active instance that fails before the grace ends extends the grace: while
// the writes of this instance fail, those of other instances usually also fail. If only this instance has lost the
// stream, two instances may act, which is better than none.
func (m *Member) fail(ctx context.Context, sent time.Time, err error, peers []caller, frozen bool) {
	if m.outage.start.IsZero() {
		m.outage.start = sent
	}
	if !errors.Is(err, errFull) { // a full stream can be read, and the calls of the active instance show that it is alive
		switch {
		case !errors.Is(err, context.DeadlineExceeded):
			m.view.blindFrom = time.Time{}
		case m.view.blindFrom.IsZero():
			m.view.blindFrom = m.view.readStart
		}
		m.view.readStart = time.Time{}
	}
	g := m.grace.Load()
	switch {
	case errors.Is(err, errFull) && m.isActive() && m.read(ctx, peers) == nil && m.isActive():
		m.extendGrace(&grace{beatSentAt: m.at(sent)}) // the leader refuses all writes, so the claim is the latest one
	case frozen: // others may write
	case g.permits(m.now(), m.lostAt.Load()):
		m.grace.Store(&grace{beatSentAt: g.beatSentAt, attemptStart: new(m.at(sent))})
	}
	now := time.Now()
	duration := now.Sub(m.outage.start)
	m.mu.Lock()
	if m.state.release != nil && (duration >= livenessTimeout || m.state.lease != nil && m.state.lease.epoch == 0) {
		m.endRelease() // the other instances learn from calls that this instance does not act
	}
	m.mu.Unlock()
	// A leader that reports "no room" was elected, so there is no need to wait for an election.
	if !frozen && (duration >= outageTimeout || errors.Is(err, errFull) && duration >= livenessTimeout) {
		m.chooseByCalls(now, peers)
	}
	if !errors.Is(err, context.DeadlineExceeded) { // without an answer, nothing shows that the stream is missing
		m.recreate(ctx)
	}
}

// isFrozen reports whether the server answers nothing on the connection, although the connection counts as up. Err is
// the error of a request.
func (m *Member) isFrozen(ctx context.Context, err error) bool {
	if !errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	return errors.Is(m.store.conn.FlushWithContext(ctx), context.DeadlineExceeded)
}

// recreate creates the stream if the stream is missing and this instance may create it.
func (m *Member) recreate(ctx context.Context) {
	if m.cfg.Create == nil || ctx.Err() != nil {
		return
	}
	if _, err := m.store.api.Last(ctx, m.store.Stream, m.store.Claim); !errors.Is(err, jetstream.ErrStreamNotFound) {
		return
	}
	if err := m.cfg.Create(ctx); err != nil {
		m.log.Warn("cannot create the stream of the active instance's claim", "stream", m.store.Stream, "err", err)
		return
	}
	m.log.Warn("the stream of the active instance's claim was missing; created it again", "stream", m.store.Stream)
}

// chooseByCalls chooses the active instance without the stream. An instance that acts continues. If no instance whose
// calls arrive acts, the best stand-by takes over. Two instances that do not receive each other's calls may both act,
// which is better than none.
func (m *Member) chooseByCalls(now time.Time, peers []caller) {
	acting := ""
	for _, p := range peers {
		if p.Acts {
			acting = p.ID
		}
	}
	if _, ok := m.outage.logLimit.Allow(alertInterval); ok {
		m.log.Error("the stream of the active instance's claim is unusable; instances choose by direct messages, and "+
			"messages may be delivered twice, under one id, until the stream is usable",
			"stream", m.store.Stream, "since", m.outage.start.UTC(), "instances", len(peers)+1)
	}
	m.mu.Lock()
	var callback func()
	granted := false
	switch w := m.state.waiter; {
	case m.state.lease != nil:
		acting = m.self.ID
	case w == nil, m.logState.olderExists:
	case acting != "":
		callback = w.onStandby
	case m.isBest(peers):
		m.grant(0)
		granted, acting = true, m.self.ID
	}
	m.state.active = acting
	m.mu.Unlock()
	if callback != nil {
		callback()
	}
	if acting == m.self.ID {
		m.extendGrace(&grace{beatSentAt: m.at(now)})
	}
	if granted {
		m.call(call{})
	}
}
