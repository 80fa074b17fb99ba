package inspect

import (
	"context"

	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/broker/message"
	"delaybroker/broker/streams"
	"delaybroker/broker/timer/schedules"
	"delaybroker/broker/timer/store"
)

// An Inspector reads and changes the streams of one broker from outside, whether the broker runs or not.
type Inspector struct {
	*Session

	cfg     broker.Config
	names   message.Names
	streams broker.Streams
}

// Open returns an Inspector that owns the connection: Close closes it. Open checks cfg and sends no request.
func Open(conn *nats.Conn, cfg broker.Config) (*Inspector, error) {
	i := &Inspector{cfg: cfg}
	if err := i.configure(); err != nil {
		return nil, err
	}
	var err error
	i.Session, err = NewSession(conn, i.streams.APIPrefix())
	return i, err
}

func (i *Inspector) configure() (err error) {
	i.streams, err = broker.StreamsOf(i.cfg)
	i.names = i.streams.Policy().Names
	return err
}

// Config returns the assumed configuration of the broker. [Inspector.Adopt] may have changed it.
func (i *Inspector) Config() broker.Config { return i.cfg }

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

// TakeOver returns an importer of the schedules that nats-server itself serves. Call ReadKeys first, because the
// importer seals the timers that it stores.
func (i *Inspector) TakeOver(dry bool) schedules.TakeOver {
	return schedules.TakeOver{Store: schedules.Store{Timers: i.Timers()}, Rules: i.cfg.Schedules, DryRun: dry}
}
