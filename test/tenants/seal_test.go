package tenants

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker"
	"delaybroker/broker/message"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// hopState returns the headers of a message between two lanes. The message is due now, and its id has this sequence.
func hopState(sequence int) []string {
	now := time.Now()
	return harness.HopHeaders(message.Request{ID: fmt.Sprintf("DELAY_5s-%d-1", sequence), Due: now, Accepted: now})
}

// TestUnknownKeyIsReadAgain: another instance, which provisioned at the same time, may have stored a key that this
// instance has not read. This instance reads the keys again before it rejects a message.
func TestUnknownKeyIsReadAgain(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		log := harness.NewCountingLog()
		c := harness.StartBroker(t, s, broker.Config{Ladder: harness.Ladder(t, "1s 5s"), Log: slog.New(log)}).NewClient()
		in := c.Subscribe("orders.>")
		const theirs = "a secret of another instance"
		c.Reconfigure("DELAY_DEAD", func(cfg *jetstream.StreamConfig) {
			cfg.Metadata["delaybroker.secret"] = theirs
		})
		c.PublishSealed(message.NewKeys([]string{theirs}), "delaysys.hop.1s.orders.x", "theirs",
			hopState(1)...)
		c.PublishSealed(message.NewKeys([]string{"nobody's secret at all"}),
			"delaysys.hop.1s.orders.x", "nobody's", hopState(2)...)
		c.PublishSealed(c.Keys("delay"), "delaysys.hop.1s.orders.x", "ours", hopState(3)...)
		time.Sleep(time.Minute)
		harness.CheckBodies(t, in.Arrivals(), "ours theirs")
		harness.CheckBodies(t, c.DeadLetters()[string(message.BadInternal)], "nobody's")
	})
}

// TestEditedSecretStaysValid: an operator replaces the secret in the metadata of all streams. A running broker that has
// read the new secret still opens the messages that are sealed with the earlier one, and warns.
func TestEditedSecretStaysValid(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		log := harness.NewCountingLog()
		cfg := broker.Config{Ladder: harness.Ladder(t, "1s 5s 1m"), Log: slog.New(log)}
		c := harness.StartBroker(t, s, cfg).NewClient()
		in, operator := c.Subscribe("orders.>"), harness.Operator(t, s)
		harness.MustPause(t, operator, "orders.paused")
		c.Publish("delay.1s.orders.paused", "sealed before")
		time.Sleep(10 * time.Second) // the sealed message is in DELAY_PAUSED now
		const edited = "a secret of another cluster"
		for info := range c.JS.ListStreams(context.Background()).Info() {
			c.Reconfigure(info.Config.Name, func(cfg *jetstream.StreamConfig) { cfg.Metadata["delaybroker.secret"] = edited })
		}
		c.PublishSealed(message.NewKeys([]string{edited}), "delaysys.hop.1s.orders.x", "sealed afterwards", hopState(1)...)
		time.Sleep(time.Minute)
		harness.MustResume(t, operator, "orders.paused")
		time.Sleep(time.Minute)
		harness.CheckBodies(t, in.Arrivals(), "sealed afterwards sealed before")
		c.CheckNoDead()
		if log.CountPrefix("the streams no longer show a secret") == 0 {
			t.Error("the broker does not warn of the edited secret")
		}
	})
}

// TestSecretSurvivesLossOfStream deletes one stream after the other. The broker still trusts sealed messages, and the
// new stream has the same secret in its metadata.
func TestSecretSurvivesLossOfStream(t *testing.T) {
	t.Parallel()
	cfg := broker.Config{Ladder: harness.Ladder(t, "1s 5s 1m"), Leaser: harness.Together}
	harness.BubbleWithBroker(t, cfg, func(t *testing.T, c *harness.Client, b *harness.Instance) {
		in := c.Subscribe("orders.>")
		secrets := func() (distinct []string) {
			for info := range c.JS.ListStreams(context.Background()).Info() {
				distinct = append(distinct, info.Config.Metadata["delaybroker.secret"])
			}
			slices.Sort(distinct)
			return slices.Compact(distinct)
		}
		before := secrets()
		for _, stream := range []string{"DELAY_OWNERS", "DELAY_INTAKE", "DELAY_DEAD", "DELAY_1s", "DELAY_RETRY_30s"} {
			c.Publish("delayin.70s.orders.x", stream)
			time.Sleep(time.Second) // the sealed message is in DELAY_1m now
			b.Stop()
			c.Remove(stream)
			b = b.Replace()
			if got := secrets(); len(got) != 1 || !slices.Equal(got, before) {
				t.Errorf("without %s: the metadata of the streams is %v, want %v", stream, got, before)
			}
			time.Sleep(2 * time.Minute)
		}
		harness.CheckBodies(t, in.Arrivals(), "DELAY_1s DELAY_DEAD DELAY_INTAKE DELAY_OWNERS DELAY_RETRY_30s")
		c.CheckNoDead()
	})
}

// TestSecretIsRequired: a broker without the secret of the other instances does not start, since they would consider
// its messages forged.
func TestSecretIsRequired(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		secret := []string{"kept by the operator, not by NATS"}
		first, c := harness.Start(t, s, broker.Config{Ladder: harness.Ladder(t, "1s 1m"), Secrets: secret})
		in := c.Subscribe("orders.>")
		c.Publish("delayin.61s.orders.x", "sealed")
		time.Sleep(time.Second)
		first.Stop()
		without := harness.LaunchBroker(t, s, broker.Config{Ladder: harness.Ladder(t, "1s 1m")})
		without.Ended = true
		if err := <-without.Done; !errors.Is(err, broker.ErrSecret) {
			t.Errorf("a broker without the secret ended with %v, want %v", err, broker.ErrSecret)
		}
		without.Close()
		second := harness.StartBroker(t, s, broker.Config{Ladder: harness.Ladder(t, "1s 1m"),
			Secrets: []string{"a new one, while it is changed", secret[0]}})
		time.Sleep(2 * time.Minute)
		harness.CheckBodies(t, in.Arrivals(), "sealed")
		second.Stop()

		c.CheckNoDead()
	})
}

// TestMetadataShowsSecret: a user who may read the configuration of a stream sees the secret in the metadata. With
// DELAY_SECRET, the metadata has no secret.
func TestMetadataShowsSecret(t *testing.T) {
	t.Parallel()
	const own = "kept by the operator, not by NATS"
	for _, secrets := range [][]string{nil, {own}} {
		runTenants(t, broker.Config{Secrets: secrets}, []string{"$JS.API.STREAM.INFO.*"},
			func(t *testing.T, admin, orders, _ *harness.Client) {
				st := orders.Stream("DELAY_INTAKE")
				metadata := st.CachedInfo().Config.Metadata
				if has := metadata["delaybroker.secret"] != ""; has != (secrets == nil) {
					t.Errorf("with DELAY_SECRET %q the metadata is %v", secrets, metadata)
				}
				if strings.Contains(fmt.Sprint(metadata), own) {
					t.Errorf("the metadata holds DELAY_SECRET: %v", metadata)
				}
			})
	}
}
