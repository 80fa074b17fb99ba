package link

import (
	"cmp"
	"context"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/nats-io/nats.go"
)

// Links are the broker's connections to NATS. They may be a single connection. If they are separate, each can have a
// user with only the permissions that it needs, and a large read delays no answer. Answers come below the inbox prefix
// of each connection: see nats.CustomInboxPrefix.
type Links struct {
	Read    *nats.Conn // pulls from the lanes
	Write   *nats.Conn // publishes into the lanes and the dead letters
	Deliver *nats.Conn // publishes to the targets
	Control *nats.Conn // sends requests to the JetStream API: streams, purges, clocks
}

// Inbox returns the prefix of a connection's inboxes, without the final dot.
func Inbox(nc *nats.Conn) string {
	return cmp.Or(nc.Opts.InboxPrefix, strings.TrimSuffix(nats.InboxPrefix, "."))
}

// Status is the state of a connection.
type Status struct {
	Name       string `json:"name"`
	Up         bool   `json:"up"`
	Reconnects uint64 `json:"reconnects"`
}

// Status returns the state of each connection.
func (l Links) Status() []Status {
	of := func(name string, nc *nats.Conn) Status {
		return Status{Name: name, Up: nc.IsConnected(), Reconnects: nc.Stats().Reconnects}
	}
	return []Status{of("read", l.Read), of("write", l.Write), of("deliver", l.Deliver), of("control", l.Control)}
}

// state is the state of a connection. It is read without a call to the connection, which could block: see the package
// documentation.
type state struct {
	conn *nats.Conn
	up   atomic.Bool
}

// States are the states of the connections that a worker depends on.
type States struct{ write, deliver, control state }

// NewStates returns the states. They are valid after Look, and while Watch runs.
func NewStates(l Links) *States {
	return &States{
		write: state{conn: l.Write}, deliver: state{conn: l.Deliver}, control: state{conn: l.Control},
	}
}

// ControlUp reports whether the JetStream API is reachable.
func (l *States) ControlUp() bool { return l.control.up.Load() }

func (l *States) all() []*state { return []*state{&l.write, &l.deliver, &l.control} }

// Online reports whether the broker can publish: into the lanes and to the targets.
func (l *States) Online() bool { return l.write.up.Load() && l.deliver.up.Load() }

// Look reads the states from the connections. Call it only before Watch.
func (l *States) Look() {
	for _, s := range l.all() {
		s.up.Store(s.conn.IsConnected())
	}
}

// Watch updates the states until ctx ends. It calls back when a connection is up again.
func (l *States) Watch(ctx context.Context, back func()) {
	var watching sync.WaitGroup
	for _, s := range l.all() {
		watching.Go(func() { s.watch(ctx, back) })
	}
	watching.Wait()
}

func (l *state) watch(ctx context.Context, back func()) {
	status := l.conn.StatusChanged()
	defer l.conn.RemoveStatusListener(status)
	l.up.Store(l.conn.IsConnected()) // the state may have changed before the listener was registered
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
			return // the connection is closed permanently
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
