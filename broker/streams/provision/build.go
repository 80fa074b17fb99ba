package provision

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/streams"
)

// Builder creates the streams of a configuration, on one connection.
type Builder struct {
	Streams
	conn *nats.Conn
	js   jetstream.JetStream
	log  *slog.Logger
}

// NewBuilder returns a builder for a connection. The keyring then reads unknown keys from the streams of that
// connection.
func (s Streams) NewBuilder(conn *nats.Conn, js jetstream.JetStream) *Builder {
	s.keys.find = func(ctx context.Context) ([]streams.Spec, error) {
		found, _, err := s.Provisioner(js).Find(ctx)
		return found, err
	}
	return &Builder{Streams: s, conn: conn, js: js, log: s.cfg.Log}
}

// copies returns the number of copies of a new stream, and reports whether the broker may create it with fewer copies.
func (b *Builder) copies() (replicas int, mayReduce bool) {
	replicas = b.cfg.Copies(b.conn.ConnectedClusterName() != "")
	return replicas, b.cfg.Replicas == 0 && replicas > 1
}

// provide provisions the streams, and returns the lanes to serve. NeedLeaders is as in streams.Provisioner.
func (b *Builder) provide(ctx context.Context, needLeaders bool) ([]streams.Spec, error) {
	maxPayload, versionErr := b.conn.MaxPayload(), streams.CheckServer(b.conn.ConnectedServerVersion())
	switch {
	case maxPayload == 0: // no server has sent its INFO yet
		return nil, nats.ErrDisconnected
	case versionErr != nil:
		return nil, versionErr
	case maxPayload < minPayload:
		return nil, Unfit(Fit(nil, nil, Allowed{MaxPayload: maxPayload, Subscriptions: true}))
	}
	replicas, mayReduce := b.copies()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	provisioner := b.Provisioner(b.js)
	provisioner.NeedLeaders = needLeaders
	if needLeaders && b.cfg.Provision {
		provisioner.Check = func(found []streams.Spec, all map[string]*jetstream.StreamInfo) error {
			return b.checkFit(ctx, b.specs(maxPayload, replicas), found, all)
		}
	}
	var infos map[string]*jetstream.StreamInfo
	provisioner.OnSuccess = func(m map[string]*jetstream.StreamInfo) { infos = m }
	found, drift, err := provisioner.Provision(ctx, b.specs(maxPayload, replicas))
	if errors.Is(err, ErrFit) {
		return nil, err
	}
	provisioner.Check = nil
	if mayReduce && tooFewServers(err) {
		b.log.Warn("JetStream runs on too few servers for three copies of a stream: creating streams with one copy. "+
			"Set DELAY_STREAM_REPLICAS to change this", "err", err)
		found, drift, err = provisioner.Provision(ctx, b.specs(maxPayload, 1))
	}
	if errors.Is(err, streams.ErrForbidden) {
		provisioner.MayCreate = false
		found, drift, err = b.useUnchanged(ctx, provisioner, b.specs(maxPayload, replicas), err)
	}
	if err != nil && (!needLeaders || !isTransient(err)) {
		found, drift, err = b.provisionRequired(ctx, provisioner, b.specs(maxPayload, replicas), err)
	}
	if err != nil {
		return nil, err
	}
	if err := b.Learn(found); err != nil {
		return nil, err
	}
	b.warnOfStranded(infos)
	for _, d := range drift {
		if d.Fatal {
			return nil, fmt.Errorf("%w: %s", ErrDrift, d)
		}
		b.log.Warn("the configuration of a stream differs from the wanted configuration; the broker serves the stream",
			"stream", d.Stream, "what", d.Difference)
	}
	return b.selectLanes(found), nil
}

// checkFit returns an ErrFit if the streams that must be created do not fit. If a stream of the broker exists, messages
// may wait, so the streams without which the broker can run do not stop its start: see provisionRequired.
func (b *Builder) checkFit(
	ctx context.Context, want, found []streams.Spec, all map[string]*jetstream.StreamInfo,
) error {
	exists := len(found) > 0
	optional := map[streams.Kind]bool{
		streams.Timers: b.cfg.TimersOptional, streams.Owners: exists, streams.Paused: exists, streams.Journal: exists,
	}
	want = slices.DeleteFunc(slices.Clone(want), func(s streams.Spec) bool { return optional[s.Kind] })
	var account *jetstream.AccountInfo
	if len(missingOf(want, all)) > 0 {
		// A start that creates nothing does not ask for the account's limits. Without the right to ask, each start would wait
		// for the answer, and the server refuses the first stream that does not fit.
		ctx, cancel := context.WithTimeout(ctx, jsapi.Timeout)
		defer cancel()
		account, _ = b.js.AccountInfo(ctx)
	}
	return Unfit(Needs(ctx, jsapi.Client{Conn: b.conn, API: b.cfg.APIPrefix}, account, want, all, true))
}

// useUnchanged uses the existing streams for a user who may not create or change them. Refused is the permission error.
// If a stream is missing, the returned error wraps refused. If existing streams only need a change, such as after a
// change of the levels, the broker serves them unchanged.
func (b *Builder) useUnchanged(
	ctx context.Context, verifier streams.Provisioner, want []streams.Spec, refused error,
) ([]streams.Spec, []streams.Drift, error) {
	found, drift, err := verifier.Provision(ctx, want)
	switch {
	case errors.Is(err, streams.ErrMissingStreams):
		err = fmt.Errorf("%w; %w", err, refused)
	case err == nil:
		b.log.Warn("the streams need a change, but the broker's user may not change them; the broker serves them "+
			"unchanged. Grant the permission, or run delaybroker provision as a user who has it", "err", refused)
	}
	return found, drift, err
}

// optionalStream is a stream that the broker can run without, and the log line for a start without it.
type optionalStream struct {
	kind    streams.Kind
	level   slog.Level
	message string
}

// optionalStreams returns the streams without which the broker can run, the most important first: the stream of owners,
// the stream of paused targets, the journal, and the stream of timers. The stream of owners is optional only if err,
// the error of provisioning, says that streams are missing. The stream of timers is optional only if the configuration
// makes it so.
func (b *Builder) optionalStreams(err error) []optionalStream {
	var all []optionalStream
	add := func(kind streams.Kind, level slog.Level, message string) {
		all = append(all, optionalStream{kind, level, message})
	}
	if b.cfg.Leaser == nil && errors.Is(err, streams.ErrMissingStreams) {
		add(streams.Owners, slog.LevelError, "the stream with which instances agree on the active one is "+
			"missing; continuing without it, so a stand-by takes over more slowly. Create it with delaybroker provision")
	}
	add(streams.Paused, slog.LevelError, "no target can be paused, because the stream of paused "+
		"messages cannot be created or used; continuing without it. Create it with delaybroker provision")
	if b.cfg.Journal > 0 {
		add(streams.Journal, slog.LevelError, "the journal's stream cannot be created or used; "+
			"continuing without it: no deliveries are recorded. Create it with delaybroker provision")
	}
	if b.cfg.Timers && b.cfg.TimersOptional {
		add(streams.Timers, slog.LevelWarn, "no named timer can be set, because the stream of "+
			"timers cannot be created or used; continuing without it. Create it with delaybroker provision, "+
			"or set DELAY_TIMERS=off")
	}
	return all
}

// provisionRequired provisions the required streams, and then adds one optional stream after the other. It leaves out
// each optional stream that cannot be provisioned. If the required streams cannot be provisioned, it returns cause, the
// error of an earlier attempt.
func (b *Builder) provisionRequired(
	ctx context.Context, p streams.Provisioner, want []streams.Spec, cause error,
) (found []streams.Spec, drift []streams.Drift, err error) {
	optionals, omitted := b.optionalStreams(cause), make(map[streams.Kind]bool)
	for _, o := range optionals {
		omitted[o.kind] = true
	}
	required := slices.DeleteFunc(slices.Clone(want), func(s streams.Spec) bool { return omitted[s.Kind] })
	if found, drift, err = p.Provision(ctx, required); err != nil {
		return nil, nil, cause
	}
	for _, o := range optionals {
		omitted[o.kind] = false
		specs := slices.DeleteFunc(slices.Clone(want), func(s streams.Spec) bool { return omitted[s.Kind] })
		f, d, err := p.Provision(ctx, specs)
		if err == nil {
			found, drift = f, d
			continue
		}
		omitted[o.kind] = true
		b.log.Log(ctx, o.level, o.message, "err", err)
	}
	return found, drift, nil
}

// warnOfStranded warns of messages that no broker reads, in streams of another prefix, and of copies of streams.
func (b *Builder) warnOfStranded(infos map[string]*jetstream.StreamInfo) {
	for _, s := range streams.FindStranded(b.cfg.Prefix, infos) {
		b.log.Warn("messages of another prefix wait, and no broker reads them: "+
			"run a broker with that prefix until its streams are empty", "prefix", s.Prefix, "messages", s.Messages,
			"streams", len(s.Streams), "such_as", s.Streams[0])
	}
	for _, name := range streams.Copies(infos) {
		b.log.Warn("a stream is a copy of one of a broker's streams; no broker reads it: "+streams.CopyAdvice(name),
			"stream", name)
	}
}

// selectLanes returns the lanes among the given streams that this broker can read.
func (b *Builder) selectLanes(found []streams.Spec) []streams.Spec {
	var lanes []streams.Spec
	for _, s := range found {
		switch {
		case s.MarksErr != nil:
			b.log.Error("the marks of a stream cannot be read, so no broker serves the stream: "+
				"correct them with nats stream edit and restart", "stream", s.Stream, "err", s.MarksErr)
		case s.Kind == streams.Dead, s.Kind == streams.Owners, s.Kind == streams.Journal:
		default:
			lanes = append(lanes, s)
		}
	}
	return lanes
}

// Configs returns the current configurations of all streams with clients' messages, including dead letters. The streams
// of the owners and of the journal have no such messages.
func (b *Builder) Configs(ctx context.Context) ([]jetstream.StreamConfig, error) {
	found, infos, err := b.Provisioner(b.js).Find(ctx)
	if err != nil {
		return nil, err
	}
	var configs []jetstream.StreamConfig
	for _, s := range found {
		if s.Kind != streams.Owners && s.Kind != streams.Journal {
			configs = append(configs, infos[s.Stream].Config)
		}
	}
	return configs, nil
}

// CreateOwners creates the stream of owners after it was deleted.
func (b *Builder) CreateOwners(ctx context.Context) error { return b.create(ctx, streams.Owners) }

// CreatePaused creates the stream of paused messages after it was deleted.
func (b *Builder) CreatePaused(ctx context.Context) error { return b.create(ctx, streams.Paused) }

// create creates the wanted stream of a kind. It is not an error if another instance has created it first.
func (b *Builder) create(ctx context.Context, kind streams.Kind) error {
	ctx, cancel := context.WithTimeout(ctx, jsapi.Timeout)
	defer cancel()
	try := func(replicas int) error {
		spec, _ := streams.SpecOfKind(b.specs(b.conn.MaxPayload(), replicas), kind)
		_, err := b.js.CreateStream(ctx, b.keys.mark(spec).Config())
		return err
	}
	replicas, mayReduce := b.copies()
	err := try(replicas)
	if mayReduce && tooFewServers(err) {
		err = try(1)
	}
	if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		return nil
	}
	return err
}
