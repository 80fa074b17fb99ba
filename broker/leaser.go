package broker

import (
	"cmp"
	"os"
	"time"

	"github.com/nats-io/nuid"

	"delaybroker/broker/lease"
)

func (b *Broker) newLeaser() lease.Leaser {
	settings := b.cfg
	if settings.Leaser != nil {
		return settings.Leaser
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
	return lease.NewMember(cfg)
}

// able returns the reason why this instance cannot work well as the active one, or nil.
func (b *Broker) able(standby bool) error {
	now := time.Now()
	return cmp.Or(b.linkAnswers.Problem(now, standby), b.engine.Problem(now))
}

// instanceOf returns the name of this instance. It is random if the leaser does not name instances.
func instanceOf(o lease.Leaser) string {
	if namer, ok := o.(interface{ Instance() string }); ok {
		return namer.Instance()
	}
	return nuid.Next()
}
