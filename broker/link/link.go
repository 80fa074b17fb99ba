package link

import (
	"cmp"
	"context"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/nats-io/nats.go"
)

// Links are the broker's connections to NATS. All fields may be the same connection. If the connections are separate,
// each can have a user with only the permissions that it needs, and a large read delays no answer. Answers arrive below
// the inbox prefix of each connection: see nats.CustomInboxPrefix.
type Links struct {
	Read    *nats.Conn // pulls from the lanes, and reads timers
	Write   *nats.Conn // publishes into the lanes and the dead letters
	Deliver *nats.Conn // publishes to the targets
	Control *nats.Conn // everything else: JetStream API, leases, pauses, requests of clients
}

// Inbox returns the prefix of a connection's inboxes, without the final dot.
func Inbox(nc *nats.Conn) string {
	return cmp.Or(nc.Opts.InboxPrefix, strings.TrimSuffix(nats.InboxPrefix, "."))
}

// Status describes a connection in the status of the broker.
type Status struct {
	Name       string `json:"name"`
	Up         bool   `json:"up"`
	Reconnects uint64 `json:"reconnects"`
}

// Status returns the state of each connection.
func (l Links) Status() []Status {
	status := func(name string, nc *nats.Conn) Status {
		return Status{Name: name, Up: nc.IsConnected(), Reconnects: nc.Stats().Reconnects}
	}
	return []Status{
		status("read", l.Read), status("write", l.Write), status("deliver", l.Deliver), status("control", l.Control),
	}
}

// state is the recorded state of a connection. A method of the connection itself could block: see the package
// documentation.
type state struct {
	conn *nats.Conn
	up   atomic.Bool
}

// States are the recorded states of three of the connections. The state of the control connection only wakes the loops.
type States struct{ write, deliver, control state }

// NewStates returns the states. Before Refresh or Watch, each connection counts as down.
func NewStates(l Links) *States {
	return &States{
		write: state{conn: l.Write}, deliver: state{conn: l.Deliver}, control: state{conn: l.Control},
	}
}

func (l *States) states() []*state { return []*state{&l.write, &l.deliver, &l.control} }

// Online reports whether the connections are up on which the broker publishes: Write and Deliver.
func (l *States) Online() bool { return l.write.up.Load() && l.deliver.up.Load() }

// Refresh reads the states from the connections. It may block. It must not be called after the start of Watch.
func (l *States) Refresh() {
	for _, s := range l.states() {
		s.up.Store(s.conn.IsConnected())
	}
}

// Watch updates the states until ctx ends. It calls onUp at least once each time a connection is up again. Several
// calls may run at the same time.
func (l *States) Watch(ctx context.Context, onUp func()) {
	var watching sync.WaitGroup
	for _, s := range l.states() {
		watching.Go(func() { s.watch(ctx, onUp) })
	}
	watching.Wait()
}

func (l *state) watch(ctx context.Context, onUp func()) {
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
			onUp()
		}
	}
}
