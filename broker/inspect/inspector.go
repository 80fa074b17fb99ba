package inspect

import (
	"context"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/config"
	"delaybroker/broker/message"
	"delaybroker/broker/streams"
	"delaybroker/broker/streams/provision"
	"delaybroker/broker/timer/store"
)

// An Inspector reads and changes the streams of one broker from outside, whether the broker runs or not.
type Inspector struct {
	*Session

	cfg     config.Config
	names   message.Names
	streams provision.Streams
}

// Open returns an Inspector that owns the connection: Close closes it. If Open fails, it closes the connection itself.
// Open checks cfg and sends no request.
func Open(conn *nats.Conn, cfg config.Config) (i *Inspector, err error) {
	i = &Inspector{cfg: cfg}
	if err := i.configure(); err != nil {
		conn.Close()
		return nil, err
	}
	i.Session, err = NewSession(conn, i.streams.APIPrefix())
	return i, err
}

func (i *Inspector) configure() (err error) {
	i.streams, err = provision.StreamsOf(i.cfg)
	i.names = i.streams.Policy().Names
	return err
}

// Config returns the assumed configuration of the broker. [Inspector.Adopt] may have changed it.
func (i *Inspector) Config() config.Config { return i.cfg }

// Policy returns the broker's policy without its limit of attempts: an operator's shell seldom has the broker's
// setting. Without [Inspector.ReadKeys] the policy has only the configured secrets.
func (i *Inspector) Policy() message.Policy {
	p := i.streams.Policy()
	p.Attempts = nil
	return p
}

// Wanted returns the specifications of the streams that should exist.
func (i *Inspector) Wanted() []streams.Spec {
	return i.streams.Wanted(i.Conn.MaxPayload(), i.Clustered())
}

// Clustered reports whether new streams get replicas by default.
func (i *Inspector) Clustered() bool { return i.Conn.ConnectedClusterName() != "" }

// Timers returns the store of the named timers. With it, the operator's commands change timers even if no broker runs.
func (i *Inspector) Timers() *store.Timers { return i.Session.Timers(i.Policy()) }

// ReadKeys reads the secrets that the streams store. Configured secrets replace them.
func (i *Inspector) ReadKeys(ctx context.Context) error {
	ctx, cancel := i.WithRefusal(ctx)
	defer cancel()
	return Cause(ctx, i.streams.ReadKeys(ctx, i.JetStream))
}
