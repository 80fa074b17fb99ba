package broker

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
)

// linkState is what is known of a connection without asking it. nats.go answers under a lock that a publish holds while
// its socket takes nothing, so a loop that asked would stand still for as long.
type linkState struct {
	conn *nats.Conn
	up   atomic.Bool
}

// online reports whether there is anywhere to publish to.
func (e *engine) online() bool { return e.writing.up.Load() && e.delivering.up.Load() }

// watchLinks keeps account of the connections until ctx ends, and wakes the workers when one is back: what became due
// meanwhile goes out at once. When JetStream is back behind a connection that stayed, their consumers may be gone.
func (b *Broker) watchLinks(ctx context.Context) {
	var watching sync.WaitGroup
	for _, l := range []*linkState{b.writing, b.delivering, b.controlling} {
		watching.Go(func() { b.watchLink(ctx, l) })
	}
	b.watchJetStream(ctx)
	watching.Wait()
}

func (b *Broker) watchLink(ctx context.Context, l *linkState) {
	status := l.conn.StatusChanged()
	defer l.conn.RemoveStatusListener(status)
	l.up.Store(l.conn.IsConnected()) // it may have changed before we listened
	for {
		var s nats.Status
		var open bool
		select {
		case <-ctx.Done():
			return
		case s, open = <-status:
		}
		if !open {
			l.up.Store(false)
			return // it is closed for good
		}
		up := s == nats.CONNECTED
		if len(status) == 0 { // nats.go drops what a listener has no place for
			up = up || l.conn.IsConnected()
		}
		l.up.Store(up)
		if !up {
			continue
		}
		for _, w := range b.enlisted() {
			w.mail.put(func(time.Time) { w.relook = time.Time{} })
		}
	}
}

// watchJetStream has the owners and all consumers looked after when some stream answers again, the latter not too often.
func (b *Broker) watchJetStream(ctx context.Context) {
	var doubt <-chan time.Time // nil unless consumers are to be looked after
	var doubted time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.back:
			b.leaser.Probe()
			if doubt == nil {
				doubt = time.After(time.Until(doubted.Add(doubtEvery)))
			}
		case <-doubt:
			doubt, doubted = nil, time.Now()
			for _, w := range b.enlisted() {
				w.reader.Probe()
			}
		}
	}
}
