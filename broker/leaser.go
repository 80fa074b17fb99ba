package broker

import (
	"os"
	"time"

	"github.com/nats-io/nuid"

	"delaybroker/broker/lease"
	"delaybroker/broker/timer"
)

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
		host = "delaybroker" // the leaser adds a unique part
	}
	names := b.names
	cfg := lease.SharedConfig{
		Conn: b.links.Control, APIPrefix: settings.APIPrefix, Connected: b.linkStates.ControlUp,
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

// claimTimeout returns the time for which this instance leaves the firing of a timer to the instance that claimed it.
// If the broker may have only one instance, the time is zero, because only an earlier process of this broker can have
// claimed the firing.
func (b *Broker) claimTimeout(instance string) time.Duration {
	cfg := b.cfg
	switch {
	case cfg.Leaser == nil && cfg.MaxOwners == 0:
		return 0
	case cfg.Leaser != nil, b.engine.Owns(instance):
		return timer.ClaimTimeout
	}
	return timer.RosterTimeout
}

// instanceOf returns the name of this instance. It is random if the leaser does not name instances.
func instanceOf(o lease.Leaser) string {
	if namer, ok := o.(interface{ Instance() string }); ok {
		return namer.Instance()
	}
	return nuid.Next()
}
