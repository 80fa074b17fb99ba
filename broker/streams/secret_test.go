package streams

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/test/natstest"
)

// secretsOf provisions the streams, and returns their secrets and the time from which messages are sealed.
func secretsOf(t *testing.T, p Provisioner, want []Spec) ([]string, time.Time) {
	t.Helper()
	found, _, err := p.Provision(context.Background(), want)
	if err != nil {
		t.Fatal(err)
	}
	return Secrets(found)
}

// removeSeals removes all metadata of seals from the streams, as if an older broker had created them.
func removeSeals(t *testing.T, js jetstream.JetStream, want []Spec) {
	t.Helper()
	for _, s := range want {
		natstest.Reconfigure(t, js, s.Stream, func(cfg *jetstream.StreamConfig) {
			delete(cfg.Metadata, metaSecret)
			delete(cfg.Metadata, metaSealed)
		})
	}
}

// TestSecretsOfConcurrentInstances: several instances provision at the same time, without streams or with the streams
// of an older broker. In any order of their steps, every secret with which an instance seals is in a stream afterwards.
func TestSecretsOfConcurrentInstances(t *testing.T) {
	for _, fresh := range []bool{true, false} {
		for range 5 {
			bubbleJS(t, func(t *testing.T, js *changeCounter) {
				specs := wantedSpecs("1m", "30m")
				if !fresh {
					mustProvision(t, provisioner(js, true), specs)
					removeSeals(t, js, specs)
				}
				var mu sync.Mutex // guards seal
				var seal []string
				var all sync.WaitGroup
				for range 6 {
					all.Go(func() {
						found, _, err := provisioner(js.JetStream, true).Provision(context.Background(), specs)
						if err != nil {
							t.Error(err)
							return
						}
						secrets, sealed := Secrets(found)
						if len(secrets) == 0 || sealed.IsZero() {
							t.Errorf("an instance found the secrets %q, sealed since %s; want both", secrets, sealed)
							return
						}
						mu.Lock()
						defer mu.Unlock()
						seal = append(seal, secrets[0])
					})
				}
				all.Wait()
				final, _ := secretsOf(t, provisioner(js, false), specs)
				for _, s := range seal {
					if !slices.Contains(final, s) {
						t.Errorf("fresh %t: an instance seals with %s, and the streams have only %s", fresh, s, final)
					}
				}
			})
		}
	}
}

// TestSecretChangesOnlyMetadata: if the provisioner may change streams, a stream of an older broker gets a secret, and
// is otherwise unchanged. A stream with a secret keeps that secret.
func TestSecretChangesOnlyMetadata(t *testing.T) {
	bubbleJS(t, func(t *testing.T, js *changeCounter) {
		specs := wantedSpecs("1m", "30m")
		mustProvision(t, provisioner(js, true), specs)
		removeSeals(t, js, specs)
		natstest.Reconfigure(t, js, "DELAY_30m", func(cfg *jetstream.StreamConfig) {
			cfg.Metadata["team"], cfg.MaxConsumers, cfg.Description = "shop", 9, "the operator's words"
			cfg.Subjects = append(cfg.Subjects, "shop.own")
		})
		before := configOf(t, js, "DELAY_30m")
		secrets, sealed := secretsOf(t, provisioner(js, false), specs)
		if len(secrets) > 0 || !sealed.IsZero() {
			t.Errorf("without permission to change streams: got %q since %s, want no secret", secrets, sealed)
		}
		secrets, sealed = secretsOf(t, provisioner(js, true), specs)
		if len(secrets) != 1 || len(secrets[0]) < 16 {
			t.Fatalf("the secrets are %q, want one", secrets)
		}
		if until := time.Until(sealed); until < 59*time.Minute || until > time.Hour {
			t.Errorf("seals are required in %s, want an hour, during which older brokers may run", until)
		}
		after := configOf(t, js, "DELAY_30m")
		delete(after.Metadata, metaSecret)
		delete(after.Metadata, metaSealed)
		if d := Subtract(before.Subjects, after.Subjects); len(d) > 0 || after.Metadata["team"] != "shop" ||
			len(after.Metadata) != len(before.Metadata) ||
			after.MaxConsumers != 9 || after.Description != before.Description {
			t.Errorf("DELAY_30m is %+v, want %+v with a secret", after, before)
		}
		// One stream has another secret. No stream changes, and the intake's secret is the first.
		natstest.Reconfigure(t, js, "DELAY_1m", func(c *jetstream.StreamConfig) { c.Metadata[metaSecret] = "another" })
		js.changes = 0
		both, _ := secretsOf(t, provisioner(js, true), specs)
		if js.changes > 0 || !slices.Equal(both, []string{secrets[0], "another"}) {
			t.Errorf("%d changes, and the secrets are %q; want none, and the intake's secret first", js.changes, both)
		}
	})
}

// TestConfiguredSecret: with a configured secret, the streams have only the time from which seals are required.
func TestConfiguredSecret(t *testing.T) {
	bubbleJS(t, func(t *testing.T, js *changeCounter) {
		p := provisioner(js, true)
		p.SecretConfigured = true
		secrets, sealed := secretsOf(t, p, wantedSpecs("1m"))
		if len(secrets) > 0 || sealed.IsZero() || sealed.After(time.Now()) {
			t.Errorf("the streams have %q, sealed since %s; want only the time", secrets, sealed)
		}
		// An instance without a configured secret creates none, because the other instances seal with theirs.
		if secrets, _ := secretsOf(t, provisioner(js, true), wantedSpecs("1m", "30m")); len(secrets) > 0 {
			t.Errorf("the secret %q was created, which the other instances do not have", secrets)
		}
	})
}

// interloper calls f, in which another instance provisions, before the second call of ListStreams.
type interloper struct {
	jetstream.JetStream
	looks int
	f     func()
}

func (i *interloper) ListStreams(ctx context.Context, opts ...jetstream.StreamListOpt) jetstream.StreamInfoLister {
	if i.looks++; i.looks == 2 {
		i.f()
	}
	return i.JetStream.ListStreams(ctx, opts...)
}

// TestSecretIsNeverOverwritten: an instance keeps the secret that another instance has just written.
func TestSecretIsNeverOverwritten(t *testing.T) {
	bubbleJS(t, func(t *testing.T, js *changeCounter) {
		specs := wantedSpecs("1m", "30m")
		mustProvision(t, provisioner(js, true), specs)
		removeSeals(t, js, specs)
		var first []string
		second, _ := secretsOf(t, provisioner(&interloper{JetStream: js.JetStream, f: func() {
			first, _ = secretsOf(t, provisioner(js.JetStream, true), specs)
		}}, true), specs)
		if len(first) != 1 || !slices.Equal(first, second) {
			t.Errorf("one instance has %q and the other %q, want the same secret", first, second)
		}
	})
}
