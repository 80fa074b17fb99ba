package broker

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
)

// probeEvery is how often at most all consumers are checked because some stream answers again.
const probeEvery = 10 * time.Second

// linkState is the state of a connection, known without asking the connection. nats.go answers under a lock, and a
// publish holds that lock while its socket takes no data: a loop that asked would stand still for as long.
type linkState struct {
	conn *nats.Conn
	up   atomic.Bool
}

// linkStates are the states of the connections that a worker depends on.
type linkStates struct{ write, deliver, control linkState }

func newLinkStates(l Links) *linkStates {
	return &linkStates{
		write: linkState{conn: l.Write}, deliver: linkState{conn: l.Deliver}, control: linkState{conn: l.Control},
	}
}

func (l *linkStates) all() []*linkState { return []*linkState{&l.write, &l.deliver, &l.control} }

// online reports whether there is anywhere to publish to.
func (l *linkStates) online() bool { return l.write.up.Load() && l.deliver.up.Load() }

// look asks the connections for their states. It is for the time before they are watched.
func (l *linkStates) look() {
	for _, s := range l.all() {
		s.up.Store(s.conn.IsConnected())
	}
}

// watch keeps the states up to date until ctx ends, and calls back when a connection is up again.
func (l *linkStates) watch(ctx context.Context, back func()) {
	var watching sync.WaitGroup
	for _, s := range l.all() {
		watching.Go(func() { s.watch(ctx, back) })
	}
	watching.Wait()
}

func (l *linkState) watch(ctx context.Context, back func()) {
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
			return // the connection is closed for good
		}
		up := s == nats.CONNECTED
		if len(status) == 0 { // nats.go drops a change for which the listener's channel has no room
			up = up || l.conn.IsConnected()
		}
		if l.up.Store(up); up {
			back()
		}
	}
}

// watchLinks wakes the workers when a connection is back, until ctx ends: messages that became due meanwhile go out at
// once.
func (b *Broker) watchLinks(ctx context.Context) {
	b.links.watch(ctx, func() {
		for _, w := range b.roster.enlisted() {
			w.mail.Put(linkBack{})
		}
		b.pauses.Look()
	})
}

// watchJetStream has the leaser and all consumers checked when some stream answers again over a connection that was
// never lost: the consumers may be gone. Consumers are checked at most every probeEvery.
func (b *Broker) watchJetStream(ctx context.Context) {
	var probe <-chan time.Time // nil unless consumers are to be checked
	var probed time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.jetstream.back:
			b.leaser.Probe()
			b.pauses.Look()
			if probe == nil {
				probe = time.After(time.Until(probed.Add(probeEvery)))
			}
		case <-probe:
			probe, probed = nil, time.Now()
			for _, w := range b.roster.enlisted() {
				w.reading.Probe()
			}
		}
	}
}
