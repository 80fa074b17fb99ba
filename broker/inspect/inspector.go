package inspect

import (
	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/broker/message"
	"delaybroker/broker/streams"
)

// An Inspector reads the streams of one broker from outside, whether the broker runs or not.
type Inspector struct {
	*Session

	cfg     broker.Config
	names   message.Names
	streams broker.Streams
}

// Open takes over the connection, and Close closes it. It checks the configuration and sends no request.
func Open(conn *nats.Conn, cfg broker.Config) (*Inspector, error) {
	i := &Inspector{cfg: cfg}
	if err := i.configure(); err != nil {
		return nil, err
	}
	var err error
	i.Session, err = NewSession(conn, i.streams.APIPrefix())
	return i, err
}

// configure applies cfg.
func (i *Inspector) configure() (err error) {
	i.streams, err = broker.StreamsOf(i.cfg)
	i.names = i.streams.Policy().Names
	return err
}

// Config returns the assumed configuration of the broker: see [Inspector.Adopt].
func (i *Inspector) Config() broker.Config { return i.cfg }

// Policy returns the broker's policy. It has the secrets of the streams after [Inspector.Letters]. It has no limits of
// attempts: an operator's shell seldom has the broker's setting.
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
