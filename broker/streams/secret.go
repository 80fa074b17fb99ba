package streams

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"

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

//
// Streams exist without a secret only if the secret is configured, or if an operator has created them. Then nothing is
// generated, and an instance without a configured secret does not start: see provision.ErrSecret.

// Secrets returns the secrets of the given streams. The brokers seal with the first secret.
func Secrets(found []Spec) (secrets []string) {
	for _, s := range intakeFirst(found) {
		if s.Secret != "" && !slices.Contains(secrets, s.Secret) {
			secrets = append(secrets, s.Secret)
		}
	}
	return secrets
}

// SecretElsewhere reports whether the streams exist and keep no secret. Streams without readable marks do not count.
func SecretElsewhere(found []Spec) bool {
	return len(Secrets(found)) == 0 && slices.ContainsFunc(found, func(s Spec) bool { return s.MarksErr == nil })
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

// seal adds the secret to the wanted streams, and writes it into existing streams without a secret. It returns the
// wanted streams with the secret, and reports whether it changed an existing stream.
func (p Provisioner) seal(ctx context.Context, want, found []Spec) (sealed []Spec, changed bool, err error) {
	secret := p.wantedSecret(found)
	for _, s := range intakeFirst(found) {
		if secret == "" || s.Secret != "" || s.MarksErr != nil {
			continue
		}
		cfg, err := p.read(ctx, s)
		if err != nil {
			return nil, false, err
		}
		if cfg == nil {
			continue // the stream was deleted
		}
		current, ok := parseMarks(*cfg, p.Names.Prefix())
		if !ok {
			continue
		}
		if current.Secret != "" { // another instance has just written its secret, which stays
			secret = current.Secret
			continue
		}
		cfg.Metadata = maps.Clone(cfg.Metadata)
		cfg.Metadata[metaSecret] = secret
		if err := p.update(ctx, *cfg); err != nil {
			return nil, false, err
		}
		changed = true
	}
	return withSecret(want, secret), changed, nil
}

func withSecret(specs []Spec, secret string) []Spec {
	specs = slices.Clone(specs)
	for i := range specs {
		specs[i].Secret = secret
	}
	return specs
}

// wantedSecret returns the secret that all streams should have, or "" if they should keep none.
func (p Provisioner) wantedSecret(found []Spec) string {
	if p.SecretConfigured || SecretElsewhere(found) {
		return ""
	}
	if secrets := Secrets(found); len(secrets) > 0 {
		return secrets[0]
	}
	return rand.Text()
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

// adopt reads the secret that another instance has written, and sets it in the specifications of the streams that this
// instance has not created yet.
func (p Provisioner) adopt(ctx context.Context, want []Spec) error {
	found, _, err := p.Find(ctx)
	if err != nil {
		return err
	}
	copy(want, withSecret(want, p.wantedSecret(found)))
	return nil
}
