package streams

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/test/natstest"
)

// secretsOf provisions the streams, and returns their secrets.
func secretsOf(t *testing.T, p Provisioner, want []Spec) []string {
	t.Helper()
	found, _, err := p.Provision(context.Background(), want)
	if err != nil {
		t.Fatal(err)
	}
	return Secrets(found)
}

// removeSecrets removes the secrets from the metadata of the given streams.
func removeSecrets(t *testing.T, js jetstream.JetStream, specs []Spec) {
	t.Helper()
	for _, s := range specs {
		natstest.Reconfigure(t, js, s.Stream, func(cfg *jetstream.StreamConfig) { delete(cfg.Metadata, metaSecret) })
	}
}

// TestSecretsOfConcurrentInstances: several instances provision at the same time, without streams, or with streams of
// which all but one lack the secret. In any order of their steps, every secret with which an instance seals is in a
// stream afterwards.
func TestSecretsOfConcurrentInstances(t *testing.T) {
	for _, fresh := range []bool{true, false} {
		for range 5 {
			bubbleJS(t, func(t *testing.T, js *changeCounter) {
				specs := wantedSpecs("1m", "30m")
				if !fresh {
					mustProvision(t, provisioner(js, true), specs)
					removeSecrets(t, js, specs[1:])
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
						secrets := Secrets(found)
						if len(secrets) == 0 {
							t.Error("an instance found no secret")
							return
						}
						mu.Lock()
						defer mu.Unlock()
						seal = append(seal, secrets[0])
					})
				}
				all.Wait()
				final := secretsOf(t, provisioner(js, false), specs)
				for _, s := range seal {
					if !slices.Contains(final, s) {
						t.Errorf("fresh %t: an instance seals with %s, and the streams have only %s", fresh, s, final)
					}
				}
			})
		}
	}
}

// TestSecretChangesOnlyMetadata: if the provisioner may change streams, a stream without the secret of the others gets
// it, and is otherwise unchanged. A stream with a secret keeps that secret.
func TestSecretChangesOnlyMetadata(t *testing.T) {
	bubbleJS(t, func(t *testing.T, js *changeCounter) {
		specs := wantedSpecs("1m", "30m")
		secrets := secretsOf(t, provisioner(js, true), specs)
		if len(secrets) != 1 || len(secrets[0]) < 16 {
			t.Fatalf("the secrets are %q, want one", secrets)
		}
		natstest.Reconfigure(t, js, "DELAY_30m", func(cfg *jetstream.StreamConfig) {
			delete(cfg.Metadata, metaSecret)
			cfg.Metadata["team"], cfg.MaxConsumers, cfg.Description = "shop", 9, "the operator's words"
			cfg.Subjects = append(cfg.Subjects, "shop.own")
		})
		before := configOf(t, js, "DELAY_30m")
		if secretsOf(t, provisioner(js, false), specs); configOf(t, js, "DELAY_30m").Metadata[metaSecret] != "" {
			t.Error("a provisioner that may not change streams has changed one")
		}
		if again := secretsOf(t, provisioner(js, true), specs); !slices.Equal(again, secrets) {
			t.Errorf("the secrets are %q, want %q", again, secrets)
		}
		after := configOf(t, js, "DELAY_30m")
		if after.Metadata[metaSecret] != secrets[0] {
			t.Errorf("DELAY_30m has the secret %q, want %q", after.Metadata[metaSecret], secrets[0])
		}
		delete(after.Metadata, metaSecret)
		if d := Subtract(before.Subjects, after.Subjects); len(d) > 0 || after.Metadata["team"] != "shop" ||
			len(after.Metadata) != len(before.Metadata) ||
			after.MaxConsumers != 9 || after.Description != before.Description {
			t.Errorf("DELAY_30m is %+v, want %+v with a secret", after, before)
		}
		// One stream has another secret. No stream changes, and the intake's secret is the first.
		natstest.Reconfigure(t, js, "DELAY_1m", func(c *jetstream.StreamConfig) { c.Metadata[metaSecret] = "another" })
		js.changes = 0
		both := secretsOf(t, provisioner(js, true), specs)
		if js.changes > 0 || !slices.Equal(both, []string{secrets[0], "another"}) {
			t.Errorf("%d changes, and the secrets are %q; want none, and the intake's secret first", js.changes, both)
		}
	})
}

// TestConfiguredSecret: with a configured secret, the streams keep none. An instance without a configured secret
// generates none for streams that exist without one, because the other instances seal with theirs.
func TestConfiguredSecret(t *testing.T) {
	bubbleJS(t, func(t *testing.T, js *changeCounter) {
		p := provisioner(js, true)
		p.SecretConfigured = true
		if secrets := secretsOf(t, p, wantedSpecs("1m")); len(secrets) > 0 {
			t.Errorf("the streams have %q, want no secret", secrets)
		}
		if secrets := secretsOf(t, provisioner(js, true), wantedSpecs("1m", "30m")); len(secrets) > 0 {
			t.Errorf("the secret %q was generated, which the other instances do not have", secrets)
		}
	})
}

// interloper calls f, in which another instance writes, before each call of ListStreams.
type interloper struct {
	jetstream.JetStream
	f func()
}

func (i interloper) ListStreams(ctx context.Context, opts ...jetstream.StreamListOpt) jetstream.StreamInfoLister {
	i.f()
	return i.JetStream.ListStreams(ctx, opts...)
}

// TestSecretIsNeverOverwritten: an instance keeps the secret that another instance has just written.
func TestSecretIsNeverOverwritten(t *testing.T) {
	bubbleJS(t, func(t *testing.T, js *changeCounter) {
		specs := wantedSpecs("1m", "30m")
		ours := secretsOf(t, provisioner(js, true), specs)
		intake := specs[slices.IndexFunc(specs, func(s Spec) bool { return s.Kind == Intake })]
		removeSecrets(t, js, []Spec{intake})
		other := interloper{JetStream: js.JetStream, f: func() {
			natstest.Reconfigure(t, js, intake.Stream, func(c *jetstream.StreamConfig) { c.Metadata[metaSecret] = "theirs" })
		}}
		if got := secretsOf(t, provisioner(other, true), specs); !slices.Equal(got, []string{"theirs", ours[0]}) {
			t.Errorf("the secrets are %q, want the other instance's, and then %q", got, ours)
		}
	})
}
