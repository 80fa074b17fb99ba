package lease

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// probeInterval is the interval at which a stand-by asks the server whether the active instance has a subscription.
	probeInterval = 200 * time.Millisecond
	// silenceTimeout is the time for which the active instance must have had no subscription, and no new beat, before a
	// stand-by takes over. It is longer than beatInterval and maxBlip: an instance that reconnects to another server, or
	// whose subscription the server of the stand-by does not know, beats in this time.
	silenceTimeout = 750 * time.Millisecond
	// minUptime is the time for which the connection of the stand-by must have been up. After a restart of a server, all
	// instances reconnect, and some of them are slower than others.
	minUptime = 5 * time.Second
)

// silence is the evidence that the active instance has no connection: the server answers a request to it with "no
// responders". The active instance never answers such a request, so a client that sees the request gains nothing.
type silence struct {
	target atomic.Pointer[string]   // the subscription to ask for; nil for none
	since  atomic.Pointer[evidence] // nil if the last request was not answered
}

// evidence is the time of the first of a series of requests without a responder.
type evidence struct {
	target string
	start  time.Time
}

// presence returns the subject of the subscription that each instance has for as long as its connection is open.
func (m *Member) presence(id string) string { return m.store.Calls + id }

// watchFor makes probe ask for an instance; the empty id ends that.
func (m *Member) watchFor(id string) {
	if id == "" || id == m.self.ID {
		m.silence.target.Store(nil)
		return
	}
	m.silence.target.Store(new(m.presence(id)))
}

// silentSince returns the time since which the instance has had no subscription. Ok is false if it has one, or if that
// is unknown.
func (m *Member) silentSince(id string) (start time.Time, ok bool) {
	e := m.silence.since.Load()
	if e == nil || e.target != m.presence(id) {
		return time.Time{}, false
	}
	return e.start, true
}

// probe asks for the subscription of the active instance until ctx ends.
func (m *Member) probe(ctx context.Context) {
	ticker := time.NewTicker(probeInterval)
	defer ticker.Stop()
	up, reconnects := time.Now(), uint64(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		target, now := m.silence.target.Load(), time.Now()
		if n := m.store.conn.Stats().Reconnects; n != reconnects || m.lostAt.Load() != nil {
			up, reconnects = now, n
		}
		if target == nil || now.Sub(up) < minUptime {
			m.silence.since.Store(nil)
			continue
		}
		requestCtx, cancel := context.WithTimeout(ctx, probeInterval)
		_, err := m.store.conn.RequestWithContext(requestCtx, *target, nil)
		cancel()
		e := m.silence.since.Load()
		switch {
		case !errors.Is(err, nats.ErrNoResponders):
			m.silence.since.Store(nil)
		case e == nil || e.target != *target:
			m.silence.since.Store(&evidence{*target, now})
			m.wake() // the next beat that this instance reads must be as new as possible
		}
	}
}
