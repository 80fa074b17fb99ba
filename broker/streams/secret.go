package streams

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
)

// If no secret is configured, this file keeps the secret of the brokers' seals in the metadata of their streams. A
// client that may only read messages, directly or through a consumer, cannot read the metadata: only stream requests of
// the JetStream API return it.
//
// Every stream has the secret, so that it is lost only with all streams. The provisioner writes the secret into each
// stream that it creates, and into existing streams without a secret. It never replaces a secret that it has read. Two
// instances that provision at the same time may each generate a secret. If both create the same stream, the server
// accepts one request. Each of them changes existing streams one by one, and reads each stream immediately before it
// writes that stream's metadata. So one instance can overwrite the secret of the other in at most one stream, and every
// secret that was ever used is in some stream. The brokers accept the seals of all these secrets, and seal with the
// secret of the intake.

// upgradeTime is the time for which older brokers, which do not seal, may run in parallel with newer brokers.
const upgradeTime = time.Hour

// Secrets returns the secrets of the given streams, and the latest SealStart, or zero if no stream has one. The brokers
// seal with the first secret.
func Secrets(found []Spec) (secrets []string, start time.Time) {
	for _, s := range intakeFirst(found) {
		if s.Secret != "" && !slices.Contains(secrets, s.Secret) {
			secrets = append(secrets, s.Secret)
		}
		if s.SealStart.After(start) {
			start = s.SealStart
		}
	}
	return secrets, start
}

// intakeFirst returns the streams with the intake first, because the brokers seal with the intake's secret.
func intakeFirst(found []Spec) []Spec {
	var intake, others []Spec
	for _, s := range found {
		if s.Kind == Intake {
			intake = append(intake, s)
		} else {
			others = append(others, s)
		}
	}
	return append(intake, others...)
}

func (s Seals) writeMarks(metadata map[string]string) {
	if s.Secret != "" {
		metadata[metaSecret] = s.Secret
	}
	if !s.SealStart.IsZero() {
		metadata[metaSealed] = s.SealStart.UTC().Format(time.RFC3339)
	}
}

// seal adds the marks of seals to the wanted streams, and writes missing marks into existing streams. It returns the
// wanted streams with the marks, and reports whether it changed an existing stream.
func (p Provisioner) seal(
	ctx context.Context, want, found []Spec, infos map[string]*jetstream.StreamInfo,
) (marked []Spec, changed bool, err error) {
	marks := p.wantedSeals(found, infos)
	for _, s := range intakeFirst(found) {
		if s.Format > Format || s.MarksErr != nil || !s.lacks(marks) {
			continue
		}
		cfg, err := p.read(ctx, s)
		if err != nil {
			return nil, false, err
		}
		if cfg == nil {
			continue // the stream was deleted
		}
		current, ok := parseMarks(*cfg, p.Prefix, p.ParseDelay)
		if !ok {
			continue
		}
		// If another instance has just written its marks, those marks stay.
		merged := Seals{Secret: cmp.Or(current.Secret, marks.Secret), SealStart: cmp.Or(current.SealStart, marks.SealStart)}
		if current.lacks(marks) {
			cfg.Metadata = maps.Clone(cfg.Metadata)
			merged.writeMarks(cfg.Metadata)
			if err := p.update(ctx, *cfg); err != nil {
				return nil, false, err
			}
			changed = true
		}
		if !p.SecretConfigured {
			marks.Secret = merged.Secret
		}
		marks.SealStart = merged.SealStart
	}
	marked = slices.Clone(want)
	for i := range marked {
		marked[i].Seals = marks
	}
	return marked, changed, nil
}

func (s Seals) lacks(marks Seals) bool {
	return s.Secret == "" && marks.Secret != "" || s.SealStart.IsZero() && !marks.SealStart.IsZero()
}

// wantedSeals returns the marks that all streams should have. If streams exist, and none has a SealStart, older brokers
// may still run: then SealStart is upgradeTime from now.
func (p Provisioner) wantedSeals(found []Spec, infos map[string]*jetstream.StreamInfo) Seals {
	secrets, start := Secrets(found)
	marks := Seals{SealStart: start}
	switch {
	case p.SecretConfigured: // the secret is configured, not kept in streams
	case len(secrets) > 0:
		marks.Secret = secrets[0]
	case start.IsZero(): // otherwise the secret was configured, and its absence is an error: see provision.ErrSecret
		marks.Secret = rand.Text()
	}
	if start.IsZero() {
		marks.SealStart = time.Now()
		for _, s := range found {
			if timestamp := infos[s.Stream].TimeStamp; !timestamp.IsZero() { // by a server's clock, like the times of messages
				marks.SealStart = timestamp
			}
		}
		if len(found) > 0 {
			marks.SealStart = marks.SealStart.Add(upgradeTime)
		}
	}
	marks.SealStart = marks.SealStart.UTC().Truncate(time.Second)
	return marks
}

// read returns the current configuration of one stream, or nil if the stream does not exist. It needs only the
// permission to list streams.
func (p Provisioner) read(ctx context.Context, s Spec) (*jetstream.StreamConfig, error) {
	ctx, cancel := context.WithTimeout(ctx, jsapi.Timeout)
	defer cancel()
	var opts []jetstream.StreamListOpt
	if len(s.Subjects) > 0 {
		opts = append(opts, jetstream.WithStreamListSubject(s.Subjects[0]))
	}
	var config *jetstream.StreamConfig
	list := p.Streams.ListStreams(ctx, opts...)
	for info := range list.Info() {
		if info.Config.Name == s.Stream {
			config = &info.Config
		}
	}
	if err := list.Err(); err != nil {
		return nil, fmt.Errorf("list streams: %w", err)
	}
	return config, nil
}

// adopt reads the marks that another instance has written, and sets them in the specifications of the streams that this
// instance has not created yet.
func (p Provisioner) adopt(ctx context.Context, want []Spec) error {
	found, infos, err := p.Find(ctx)
	if err != nil {
		return err
	}
	marks := p.wantedSeals(found, infos)
	for i := range want {
		want[i].Seals = marks
	}
	return nil
}
