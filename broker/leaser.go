package broker

import (
	"os"
	"time"

	"github.com/nats-io/nuid"

	"delaybroker/broker/lease"
	"delaybroker/broker/timer"
)

// newLeaser makes the leaser that the configuration asks for.
func (b *Broker) newLeaser() lease.Leaser {
	settings := b.cfg
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
	names := b.names
	cfg := lease.SharedConfig{
		Conn: b.conns.Control, APIPrefix: settings.APIPrefix, Connected: b.links.ControlUp,
		Keys: b.keys.Policy.Keys, MaxOwners: settings.MaxOwners, Format: settings.Format, Log: b.log, Fail: b.quit,
		Name: settings.Instance, Host: host, Place: settings.Place.Name, Locked: settings.Place.Locked,
		Subjects: lease.Subjects{
			Stream: names.OwnersStream(), All: names.OwnersFilter(), Table: names.OwnersTable(),
			Beat: names.OwnersBeat(), Call: names.OwnersCall(),
		},
	}
	if settings.Provision {
		cfg.Create = b.streams.CreateOwners
	}
	return lease.NewShared(cfg)
}

// claimTimeout is how long the firing of a timer is left to the instance that it names. An instance that is alone was
// that one before it was restarted.
func (b *Broker) claimTimeout(instance string) time.Duration {
	cfg := b.cfg
	switch {
	case cfg.Leaser == nil && cfg.MaxOwners == 0:
		return 0
	case cfg.Leaser != nil:
		return timer.ClaimTimeout
	}
	if b.engine.Owns(instance) {
		return timer.ClaimTimeout
	}
	return timer.RosterTimeout
}

// instanceOf is the name of this instance among the others. Where no leaser names the instances, it is random.
func instanceOf(o lease.Leaser) string {
	if named, ok := o.(interface{ Instance() string }); ok {
		return named.Instance()
	}
	return nuid.Next()
}
