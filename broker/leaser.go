package broker

import (
	"context"
	"errors"
	"os"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"delaybroker/broker/layout"
	"delaybroker/broker/lease"
)

// ownersSpec is the stream in which instances agree who owns what.
func (e *engine) ownersSpec(replicas int) layout.Spec {
	return layout.Spec{
		Kind: layout.Owners, Stream: e.names.OwnersStream(), Subjects: []string{e.names.OwnersFilter()},
		Prefix: e.cfg.Prefix, Format: layout.Format, Replicas: replicas, Duplicates: e.cfg.DedupWindow, MaxMsgSize: -1,
	}
}

// newLeaser is the one that the configuration asks for.
func (e *engine) newLeaser() lease.Leaser {
	switch {
	case e.cfg.Leaser != nil:
		return e.cfg.Leaser
	case e.cfg.MaxOwners == 0:
		return lease.Static{}
	}
	host, err := os.Hostname()
	if err != nil {
		host = "delaybroker" // what is added makes it unique
	}
	cfg := lease.SharedConfig{
		Conn: e.links.Control, APIPrefix: e.cfg.APIPrefix, Connected: e.controlling.up.Load, Seal: e.policy.Keys, MaxOwners: e.cfg.MaxOwners, Log: e.log,
		Name: e.cfg.Instance, Host: host, Place: e.cfg.Place.Name, Locked: e.cfg.Place.Locked, Fail: e.quit,
		Subjects: lease.Subjects{
			Stream: e.names.OwnersStream(), All: e.names.OwnersFilter(), Table: e.names.OwnersTable(),
			Beat: e.names.OwnersBeat(), Call: e.names.OwnersCall(),
		},
	}
	if e.cfg.Provision {
		cfg.Create = e.createOwners
	}
	return lease.NewShared(cfg)
}

// instanceOf is what an instance is called among the others. Where they do not know of each other it is made up.
func instanceOf(o lease.Leaser) string {
	if named, ok := o.(interface{ Instance() string }); ok {
		return named.Instance()
	}
	return nuid.Next()
}

// createOwners makes the stream anew. Another instance may have been faster.
func (e *engine) createOwners(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	replicas := e.cfg.replicas(e.links.Control.ConnectedClusterName() != "")
	_, err := e.js.CreateStream(ctx, e.marked(e.ownersSpec(replicas)).Config())
	if e.cfg.Replicas == 0 && replicas > 1 && tooFewServers(err) {
		_, err = e.js.CreateStream(ctx, e.marked(e.ownersSpec(1)).Config())
	}
	if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		return nil
	}
	return err
}
