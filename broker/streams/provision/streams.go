package provision

import (
	"context"

	"delaybroker/broker/config"
	"delaybroker/broker/message"
	"delaybroker/broker/streams"
	"delaybroker/levels"
)

// Streams derives the wanted streams from a configuration, and the policy that parses their messages. It does not need
// a running broker.
type Streams struct {
	cfg        config.Config
	names      message.Names
	keys       *Keyring
	retryLanes levels.Ladder // the retry lanes, for all targets
}

// StreamsOf checks a configuration, and returns its Streams.
func StreamsOf(cfg config.Config) (Streams, error) {
	cfg, err := cfg.Complete()
	if err != nil {
		return Streams{}, err
	}
	names, _ := message.NewNames(cfg.Prefix) // Complete has checked both
	lanes, _ := config.RetryLanes(cfg.RetryRules, cfg.RetryLadder)
	keys := &Keyring{Policy: cfg.Policy(names), configured: cfg.Secrets, log: cfg.Log}
	return Streams{cfg: cfg, names: names, keys: keys, retryLanes: lanes}, nil
}

// Config returns the configuration with its defaults filled in.
func (s Streams) Config() config.Config { return s.cfg }

// Keys returns the keyring of the streams.
func (s Streams) Keys() *Keyring { return s.keys }

// Wanted returns the streams that should exist on a server with the given max_payload, alone or in a cluster.
func (s Streams) Wanted(maxPayload int64, clustered bool) []streams.Spec {
	return s.specs(maxPayload, s.cfg.Copies(clustered))
}

// APIPrefix returns the prefix of the JetStream API, such as "$JS.API".
func (s Streams) APIPrefix() string { return s.cfg.APIPrefix }

// Provisioner returns a provisioner, which can create the streams or only find them.
func (s Streams) Provisioner(js streams.Streams) streams.Provisioner {
	return streams.Provisioner{
		Streams: js, Names: s.names, MayCreate: s.cfg.Provision, SecretConfigured: len(s.cfg.Secrets) > 0,
	}
}

// ReadKeys reads the secrets from the metadata of the streams, so that Policy can verify the brokers' seals.
func (s Streams) ReadKeys(ctx context.Context, js streams.Streams) error {
	found, _, err := s.Provisioner(js).Find(ctx)
	if err != nil {
		return err
	}
	return s.Learn(found)
}

// Learn is like ReadKeys, with streams that the caller has already found.
func (s Streams) Learn(found []streams.Spec) error { return s.keys.learn(found) }

// Policy returns the policy that parses the streams' messages. Before ReadKeys or Learn it has only the configured
// secrets.
func (s Streams) Policy() message.Policy { return s.keys.Policy }
