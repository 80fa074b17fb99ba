package broker

import (
	"cmp"
	"os"
	"time"

	"github.com/nats-io/nuid"

	"delaybroker/broker/lease"
)

// newLeaser returns the leaser, and the name of this instance. The name is random if the settings have a leaser.
func (b *Broker) newLeaser() (l lease.Leaser, id string) {
	settings := b.cfg
	if settings.Leaser != nil {
		return settings.Leaser, nuid.Next()
	}
	host, err := os.Hostname()
	if err != nil {
		host = "delaybroker" // the leaser adds a unique part
	}
	names := b.names
	cfg := lease.Config{
		Conn: b.links.Control, APIPrefix: settings.APIPrefix,
		Keys: b.keys.Policy.Keys, Format: settings.Format, Log: b.log, Fail: b.quit, Able: b.able,
		Name: settings.Instance, Host: host, Place: settings.Place.Name, Locked: settings.Place.Locked,
		Subjects: lease.Subjects{Stream: names.OwnersStream(), Claim: names.OwnersClaim(), Calls: names.OwnersCalls()},
	}
	if settings.Provision {
		cfg.Create = b.streams.CreateOwners
	}
	m := lease.NewMember(cfg)
	return m, m.Instance()
}

// able returns the reason why this instance cannot work well as the active one, or nil.
func (b *Broker) able(standby bool) error {
	now := time.Now()
	return cmp.Or(b.linkAnswers.Problem(now, standby), b.engine.Problem(now))
}
