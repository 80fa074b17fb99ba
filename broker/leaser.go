package broker

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"delaybroker/broker/layout"
	"delaybroker/broker/lease"
	"delaybroker/broker/timer"
)

// newLeaser makes the leaser that the configuration asks for.
func (b *Broker) newLeaser() lease.Leaser {
	settings := b.streams.cfg
	switch {
	case settings.Leaser != nil:
		return settings.Leaser
	case settings.MaxOwners == 0:
		return lease.Static{}
	}
	host, err := os.Hostname()
	if err != nil {
		host = "delaybroker" // a part that is added to it makes it unique
	}
	names := b.streams.names
	cfg := lease.SharedConfig{
		Conn: b.conns.Control, APIPrefix: settings.APIPrefix, Connected: b.links.control.up.Load,
		Seal: b.streams.keys.policy.Keys, MaxOwners: settings.MaxOwners, Log: b.log, Fail: b.quit,
		Name: settings.Instance, Host: host, Place: settings.Place.Name, Locked: settings.Place.Locked,
		Subjects: lease.Subjects{
			Stream: names.OwnersStream(), All: names.OwnersFilter(), Table: names.OwnersTable(),
			Beat: names.OwnersBeat(), Call: names.OwnersCall(),
		},
	}
	if settings.Provision {
		cfg.Create = b.createOwners
	}
	return lease.NewShared(cfg)
}

// patience is how long the firing of a timer is left to the instance that it names. An instance that is alone was
// that one before it was restarted.
func (b *Broker) patience(instance string) time.Duration {
	cfg := b.streams.cfg
	switch {
	case cfg.Leaser == nil && cfg.MaxOwners == 0:
		return 0
	case cfg.Leaser != nil:
		return timer.Patience
	}
	for _, l := range b.roster.counted() {
		if b.leaser.Owner(l.lane.Stream) == instance {
			return timer.Patience
		}
	}
	return timer.RosterPatience
}

// instanceOf is the name of this instance among the others. Where instances do not know of each other, it is random.
func instanceOf(o lease.Leaser) string {
	if named, ok := o.(interface{ Instance() string }); ok {
		return named.Instance()
	}
	return nuid.Next()
}

// createOwners creates the stream of owners.
func (b *Broker) createOwners(ctx context.Context) error { return b.create(ctx, b.streams.ownersSpec) }

// create creates a stream that is gone, with so many replicas. Another instance may have been faster.
func (b *Broker) create(ctx context.Context, spec func(replicas int) layout.Spec) error {
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	replicas := b.streams.cfg.replicas(b.conns.Control.ConnectedClusterName() != "")
	_, err := b.jetstream.js.CreateStream(ctx, b.streams.keys.marked(spec(replicas)).Config())
	if b.streams.cfg.Replicas == 0 && replicas > 1 && tooFewServers(err) {
		_, err = b.jetstream.js.CreateStream(ctx, b.streams.keys.marked(spec(1)).Config())
	}
	if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		return nil
	}
	return err
}
