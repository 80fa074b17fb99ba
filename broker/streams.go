package broker

import (
	"context"
	"time"

	"delaybroker/broker/layout"
	"delaybroker/broker/leader"
	"delaybroker/broker/message"
	"delaybroker/levels"
)

// Streams is what a configuration says about streams: which there should be, how their messages are read, and when a
// message should have left one. It looks at them without running a broker.
type Streams struct {
	cfg   Config
	names message.Names
	keys  *keyring
	lanes levels.Ladder // of retries: the waits of all targets together
}

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
	keys := &keyring{policy: cfg.policy(names), subject: names.SysFilter(), fixed: cfg.Secrets, log: cfg.Log}
	lanes, err := cfg.RetryRules.Lanes(cfg.RetryLadder)
	if err != nil {
		return Streams{}, err
	}
	return Streams{cfg: cfg, names: names, keys: keys, lanes: lanes}, nil
}

// Wanted are the streams to be there on a server with this max_payload, alone or in a cluster.
func (s Streams) Wanted(maxPayload int64, clustered bool) []layout.Spec {
	return s.specs(maxPayload, s.cfg.replicas(clustered))
}

// APIPrefix is that of the JetStream API, as in "$JS.API".
func (s Streams) APIPrefix() string { return s.cfg.APIPrefix }

// Provisioner brings them into being, or only finds them.
func (s Streams) Provisioner(js layout.Streams) layout.Provisioner {
	return layout.Provisioner{
		Streams: js, Prefix: s.cfg.Prefix, Roots: s.names.Roots(), Delay: levels.ParseDuration, Create: s.cfg.Provision,
		OwnSecret: len(s.cfg.Secrets) > 0, Dispensable: s.names.JournalStream(),
		Retired: func(l layout.Spec) []string { return []string{s.names.HopFilter(l.Name)} },
	}
}

// ReadKeys looks for the secrets in the metadata of the streams, so that Policy can tell which messages are ours.
func (s Streams) ReadKeys(ctx context.Context, js layout.Streams) error {
	found, _, err := s.Provisioner(js).Find(ctx)
	if err != nil {
		return err
	}
	return s.Learn(found)
}

// Learn is ReadKeys for a caller who has found the streams already.
func (s Streams) Learn(found []layout.Spec) error { return s.keys.learn(found) }

// Policy reads the messages in them. Until ReadKeys it knows only the secrets of the configuration.
func (s Streams) Policy() message.Policy { return s.keys.policy }

// Leaves is the time at which a message that asks for r, stored in a lane at the given time, should have left it: moved
// on or, with too little left for another hop, delivered.
func (s Streams) Leaves(l layout.Spec, stored time.Time, r message.Request) time.Time {
	return s.plan(l).leaves(leader.At(stored), r).Stamp()
}

// plan is by what the messages of a lane are decided about.
func (s Streams) plan(l layout.Spec) plan {
	p := plan{
		kind: l.Kind, delay: l.Delay, ladder: s.cfg.Ladder, retries: s.cfg.RetryLadder, retryRules: s.cfg.RetryRules,
		attempts: s.cfg.Attempts, attemptRules: s.cfg.AttemptRules,
	}
	if l.Kind == layout.Paused {
		p.pause = l.Name
	}
	return p
}
