package broker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/layout"
	"delaybroker/levels"
)

// What the streams keep free of max_payload, so that whatever was accepted can be moved: a hop adds headers, and lands
// in a stream whose limit counts them.
const (
	intakeReserve = 8 << 10
	levelReserve  = 4 << 10
	leastPayload  = 2 * intakeReserve
)

// specs are the streams that a configuration wants.
func (e *engine) specs(maxPayload int64, replicas int) []layout.Spec {
	base := layout.Spec{Prefix: e.cfg.Prefix, Format: layout.Format, Replicas: replicas, Duplicates: e.cfg.DedupWindow}
	var all []layout.Spec
	for _, l := range e.cfg.Ladder.Levels() {
		s := base
		s.Kind, s.Stream, s.Name, s.Delay = layout.Level, e.names.LevelStream(l.Name), l.Name, l.Delay
		s.Subjects = append(e.clientSubjects(l.Name), e.names.HopFilter(l.Name))
		s.MaxMsgSize = int32(maxPayload - levelReserve)
		s.MaxMsgs, s.MaxBytes = e.cfg.MaxPending, e.cfg.MaxPendingBytes
		all = append(all, s)
	}
	for _, l := range e.cfg.RetryLadder.Levels() {
		s := base
		s.Kind, s.Stream, s.Name, s.Delay = layout.Retry, e.names.RetryStream(l.Name), l.Name, l.Delay
		s.Subjects = []string{e.names.RetryFilter(l.Name)}
		s.MaxMsgSize = int32(maxPayload - levelReserve)
		all = append(all, s)
	}
	intake := base
	intake.Kind, intake.Stream, intake.MaxMsgSize = layout.Intake, e.names.IntakeStream(), int32(maxPayload-intakeReserve)
	intake.MaxMsgs, intake.MaxBytes = e.cfg.MaxPending, e.cfg.MaxPendingBytes
	intake.Subjects = []string{e.names.InFilter(), e.names.AtFilter()}
	for _, plain := range levels.Whole() {
		if _, isLevel := e.cfg.Ladder.Lookup(plain); !isLevel {
			intake.Subjects = append(intake.Subjects, e.clientSubjects(plain)...)
		}
	}
	dead := base
	dead.Kind, dead.Stream, dead.MaxMsgSize = layout.Dead, e.names.DeadStream(), -1
	dead.Subjects = []string{e.names.DeadFilter()}
	all = append(all, intake, dead)
	if e.cfg.MaxOwners > 0 {
		all = append(all, e.ownersSpec(replicas))
	}
	return all
}

// clientSubjects is what clients publish on for one level or plain duration.
func (e *engine) clientSubjects(token string) []string {
	subjects := []string{e.names.LevelFilter(token)}
	if len(e.cfg.HeaderTargets) > 0 {
		subjects = append(subjects, e.names.Bare(token))
	}
	return subjects
}

// replicas is the number of copies of a new stream.
func (c Config) replicas(clustered bool) int {
	switch {
	case c.Replicas > 0:
		return c.Replicas
	case clustered:
		return 3
	}
	return 1
}

// Refusals of nats-server to keep so many copies: it is no cluster, or one of too few servers.
const codeNoCopies = 10074 // JSStreamReplicasNotSupportedErr

// tooFewServers reports whether fewer copies would be stored. The cluster that we are connected to need not be the one that
// JetStream runs on: behind a leaf node it may be a single server.
func tooFewServers(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && !isTransient(err) && (api.ErrorCode == codeNoCopies || api.ErrorCode == codeNoPeers)
}

func (e *engine) provisioner(js layout.Streams) layout.Provisioner {
	return layout.Provisioner{
		Streams: js, Prefix: e.cfg.Prefix, Roots: e.names.Roots(), Delay: levels.ParseDuration, Create: e.cfg.Provision,
		OwnSecret: len(e.cfg.Secrets) > 0,
		Retired:   func(s layout.Spec) []string { return []string{e.names.HopFilter(s.Name)} },
	}
}

// provision brings the streams into being and returns the lanes to serve. While it is patient, a stream without a leader is
// an error.
func (e *engine) provision(ctx context.Context, patient bool) ([]layout.Spec, error) {
	clustered := e.links.Control.ConnectedClusterName() != ""
	maxPayload := e.links.Control.MaxPayload()
	switch {
	case maxPayload == 0: // no server has said anything yet
		return nil, nats.ErrDisconnected
	case maxPayload < leastPayload:
		return nil, fmt.Errorf("%w: the server's max_payload is %d: at least %d, of which messages have all but %d", ErrConfig, maxPayload, leastPayload, intakeReserve)
	}
	replicas := e.cfg.replicas(clustered)
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	provisioner := e.provisioner(e.js)
	provisioner.Patient = patient
	found, drift, err := provisioner.Provision(ctx, e.specs(maxPayload, replicas))
	if e.cfg.Replicas == 0 && replicas > 1 && tooFewServers(err) {
		e.log.Warn("JetStream has no room for three copies of a stream: creating them with one. Set DELAY_STREAM_REPLICAS to say otherwise", "err", err)
		found, drift, err = provisioner.Provision(ctx, e.specs(maxPayload, 1))
	}
	if errors.Is(err, layout.ErrMissingStreams) && e.cfg.MaxOwners > 0 {
		// If it is only the stream that instances meet in, they can do without.
		missing := err
		lanes := slices.DeleteFunc(e.specs(maxPayload, replicas), func(s layout.Spec) bool { return s.Kind == layout.Owners })
		if found, drift, err = provisioner.Provision(ctx, lanes); err != nil {
			return nil, missing
		}
		e.log.Error("a stream is missing that instances need to share the work; going on without it. Create it with DELAY_PROVISION=create", "err", missing)
	}
	if err != nil {
		return nil, err
	}
	if err := e.learn(found); err != nil {
		return nil, err
	}
	if _, all, err := provisioner.Find(ctx); err == nil {
		for _, s := range layout.FindStranded(e.cfg.Prefix, all) {
			e.log.Warn("messages wait for ever under another prefix: run a broker with it until its streams are empty",
				"prefix", s.Prefix, "messages", s.Messages, "streams", len(s.Streams), "such_as", s.Streams[0])
		}
	}
	for _, d := range drift {
		if d.Fatal {
			return nil, fmt.Errorf("%w: %s", ErrDrift, d)
		}
		e.log.Warn("a stream is not as it should be", "stream", d.Stream, "what", d.What)
	}
	var lanes []layout.Spec
	for _, s := range found {
		switch {
		case s.Broken != nil:
			e.log.Error("the marks of a stream cannot be read; nobody serves it: correct them with nats stream edit and restart", "stream", s.Stream, "err", s.Broken)
		case s.Kind == layout.Dead, s.Kind == layout.Owners:
		case s.Kind != layout.Intake && s.Kind != layout.Level && s.Kind != layout.Retry:
			e.log.Error("a stream of a kind that this broker does not know; leaving it alone", "stream", s.Stream, "kind", s.Kind)
		case s.Format > layout.Format:
			e.log.Error("a newer broker made this stream; leaving it alone", "stream", s.Stream, "format", s.Format)
		default:
			lanes = append(lanes, s)
		}
	}
	return lanes, nil
}
