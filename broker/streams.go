package broker

import (
	"context"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/layout"
	"delaybroker/broker/message"
)

// Streams is what a configuration says about streams, for those who look at them without running a broker.
type Streams struct{ e *engine }

// StreamsOf checks the configuration as New does.
func StreamsOf(cfg Config) (Streams, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return Streams{}, err
	}
	names, err := message.NewNames(cfg.Prefix)
	if err != nil {
		return Streams{}, err
	}
	return Streams{&engine{cfg: cfg, names: names, policy: cfg.policy(names)}}, nil
}

// Wanted are the streams to be there on a server with this max_payload, alone or in a cluster.
func (s Streams) Wanted(maxPayload int64, clustered bool) []layout.Spec {
	return s.e.specs(maxPayload, s.e.cfg.replicas(clustered))
}

// APIPrefix is that of the JetStream API, as in "$JS.API".
func (s Streams) APIPrefix() string { return s.e.cfg.APIPrefix }

// Provisioner brings them into being, or only finds them.
func (s Streams) Provisioner(js layout.Streams) layout.Provisioner { return s.e.provisioner(js) }

// ReadKeys looks for the secrets in the metadata of the streams, so that Policy can tell what is ours.
func (s Streams) ReadKeys(ctx context.Context, js layout.Streams) error {
	found, _, err := s.e.provisioner(js).Find(ctx)
	if err != nil {
		return err
	}
	return s.Learn(found)
}

// Learn is ReadKeys for who has found the streams already.
func (s Streams) Learn(found []layout.Spec) error { return s.e.learn(found) }

// Policy reads the messages in them. Until ReadKeys it knows only the secrets of the configuration.
func (s Streams) Policy() message.Policy { return s.e.policy }

// Leaves is the time at which a message that asks for r, stored in a lane at the given time, should have left it: moved
// on or, with too little left for another hop, delivered.
func (s Streams) Leaves(l layout.Spec, stored time.Time, r message.Request) time.Time {
	return s.e.leaves(l, stored, r)
}

func (e *engine) leaves(l layout.Spec, stored time.Time, r message.Request) time.Time {
	end := stored.Add(l.Delay)
	if when := r.When(); when.Sub(end) <= e.cfg.Ladder.Horizon() {
		return when
	}
	return end
}

// StreamConfigs are those of all streams of ours that keep messages, dead letters included, as they are now.
func (b *Broker) StreamConfigs(ctx context.Context) ([]jetstream.StreamConfig, error) {
	found, all, err := b.provisioner(b.js).Find(ctx)
	if err != nil {
		return nil, err
	}
	var configs []jetstream.StreamConfig
	for _, s := range found {
		if s.Kind != layout.Owners {
			configs = append(configs, all[s.Stream].Config)
		}
	}
	return configs, nil
}
