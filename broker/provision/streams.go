package provision

import (
	"context"
	"time"

	"delaybroker/broker/attempts"
	"delaybroker/broker/conf"
	"delaybroker/broker/layout"
	"delaybroker/broker/leader"
	"delaybroker/broker/message"
	"delaybroker/levels"
)

// Streams is what a configuration says about streams: which there should be, how their messages are read, and when a
// message should have left one. It looks at them without running a broker.
type Streams struct {
	cfg   conf.Config
	names message.Names
	keys  *Keyring
	lanes levels.Ladder // of retries: the waits of all targets together
}

// StreamsOf checks the configuration.
func StreamsOf(cfg conf.Config) (Streams, error) {
	cfg, err := cfg.Complete()
	if err != nil {
		return Streams{}, err
	}
	names, err := message.NewNames(cfg.Prefix)
	if err != nil {
		return Streams{}, err
	}
	keys := &Keyring{Policy: cfg.Policy(names), subject: names.SysFilter(), fixed: cfg.Secrets, log: cfg.Log}
	lanes, err := attempts.Lanes(cfg.RetryRules, cfg.RetryLadder)
	if err != nil {
		return Streams{}, err
	}
	return Streams{cfg: cfg, names: names, keys: keys, lanes: lanes}, nil
}

// Config is the configuration, with nothing left open.
func (s Streams) Config() conf.Config { return s.cfg }

// Keys are the keys that the streams keep.
func (s Streams) Keys() *Keyring { return s.keys }

// Wanted are the streams to be there on a server with this max_payload, alone or in a cluster.
func (s Streams) Wanted(maxPayload int64, clustered bool) []layout.Spec {
	return s.specs(maxPayload, s.cfg.Copies(clustered))
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
func (s Streams) Learn(found []layout.Spec) error { return s.keys.Learn(found) }

// Policy reads the messages in them. Until ReadKeys it knows only the secrets of the configuration.
func (s Streams) Policy() message.Policy { return s.keys.Policy }

// Leaves is the time at which a message that asks for r, stored in a lane at the given time, should have left it: moved
// on or, with too little left for another hop, delivered.
func (s Streams) Leaves(l layout.Spec, stored time.Time, r message.Request) time.Time {
	return Leaves(l.Kind, l.Delay, s.cfg.Ladder, leader.At(stored), r).Stamp()
}

// Leaves is that time in a broker whose new messages take the levels of a ladder.
func Leaves(
	kind layout.Kind, delay time.Duration, ladder levels.Ladder, stored leader.Time, r message.Request,
) leader.Time {
	end := stored.Add(delay)
	if when := leader.At(r.When()); when.Sub(end) <= ladder.Horizon() || kind == layout.Timers {
		return when
	}
	return end
}
