package inspect

import (
	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/broker/message"
	"delaybroker/broker/streams"
)

// An Inspector looks at the streams of one broker from outside, next to a broker or without one.
type Inspector struct {
	*Session

	cfg     broker.Config
	names   message.Names
	streams broker.Streams
}

// Open takes over the connection; Close closes it. It checks the configuration, and asks nothing.
func Open(conn *nats.Conn, cfg broker.Config) (*Inspector, error) {
	i := &Inspector{cfg: cfg}
	if err := i.configure(); err != nil {
		return nil, err
	}
	var err error
	i.Session, err = NewSession(conn, i.streams.APIPrefix())
	return i, err
}

// configure takes over what cfg says now.
func (i *Inspector) configure() (err error) {
	i.streams, err = broker.StreamsOf(i.cfg)
	i.names = i.streams.Policy().Names
	return err
}

// Config is what the broker is taken to have been configured with: see [Inspector.Adopt].
func (i *Inspector) Config() broker.Config { return i.cfg }

// Policy is what the broker grants. It knows the secrets of the streams after [Inspector.Letters]. How often a target
// may refuse is the broker's to say: a person's shell seldom has the setting.
func (i *Inspector) Policy() message.Policy {
	p := i.streams.Policy()
	p.Attempts = nil
	return p
}

// Wanted are the streams that should be there.
func (i *Inspector) Wanted() []streams.Spec {
	return i.streams.Wanted(i.Conn.MaxPayload(), i.Clustered())
}

// Clustered reports whether new streams get replicas unless told otherwise.
func (i *Inspector) Clustered() bool { return i.Conn.ConnectedClusterName() != "" }
