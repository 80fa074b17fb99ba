package tenants

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
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

// TestUnknownKeyIsLookedFor: another instance that provisioned at the same time may have stored a key which this
// instance has not read. It reads the keys again before it gives the message up.
func TestUnknownKeyIsLookedFor(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		log := harness.NewCountingLog()
		harness.StartBroker(t, s, broker.Config{Ladder: harness.Ladder(t, "1s 5s"), Log: slog.New(log)})
		c := harness.NewClient(t, s)
		in := c.Subscribe("orders.>")
		const theirs = "a secret of another instance"
		natstest.Reconfigure(t, c.JS, "DELAY_DEAD", func(cfg *jetstream.StreamConfig) {
			cfg.Metadata["delaybroker.secret"] = theirs
		})
		now := time.Now().UTC().Format(time.RFC3339Nano)
		state := func(n int) []string {
			return []string{message.HeaderFormat, "1", message.HeaderHop, "1", message.HeaderID,
				fmt.Sprintf("DELAY_5s-%d-1", n), message.HeaderDue, now, message.HeaderAccepted, now}
		}
		c.PublishSealed(message.NewKeys([]string{theirs}, time.Unix(0, 0)), "delaysys.hop.1s.orders.x", "theirs",
			state(1)...)
		c.PublishSealed(message.NewKeys([]string{"nobody's secret at all"}, time.Unix(0, 0)),
			"delaysys.hop.1s.orders.x", "nobody's", state(2)...)
		c.PublishSealed(c.Keys("delay"), "delaysys.hop.1s.orders.x", "ours", state(3)...)
		time.Sleep(time.Minute)
		if got := harness.Bodies(in.All()); got != "ours theirs" {
			t.Errorf("came %q, want ours and theirs", got)
		}
		if got := harness.Bodies(c.Dead()[string(message.BadInternal)]); got != "nobody's" {
			t.Errorf("became bad_internal: %q, want the messages without a known key", got)
		}
	})
}

// strip removes entries from the metadata of all streams, so that the streams look like those of an older broker.
func strip(c *harness.Client, names ...string) {
	c.T.Helper()
	for stream := range c.JS.StreamNames(context.Background()).Name() {
		natstest.Reconfigure(c.T, c.JS, stream, func(cfg *jetstream.StreamConfig) {
			maps.DeleteFunc(cfg.Metadata, func(name, _ string) bool { return slices.Contains(names, name) })
		})
	}
}

// TestUpgradeFromUnsealed: a newer broker trusts the messages that an older one stored without a seal. For one hour it
// also trusts what the older broker stores beside it, and writes a format that the older one can read. After the hour,
// messages without a seal are not trusted.
func TestUpgradeFromUnsealed(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		older := harness.StartBroker(t, s, broker.Config{Ladder: harness.Ladder(t, "1s 5s 1m")})
		c := harness.NewClient(t, s)
		older.Stop()
		strip(c, "delaybroker.secret", "delaybroker.sealed")
		in := c.Subscribe("orders.>")
		unsealed := func(n int, body string) {
			now := time.Now().UTC().Format(time.RFC3339Nano)
			c.Publish("delaysys.hop.1s.orders.x", body, message.HeaderFormat, "1", message.HeaderHop, "1",
				message.HeaderID, fmt.Sprintf("DELAY_5s-%d-1", n), message.HeaderDue, now, message.HeaderAccepted, now)
		}
		unsealed(1, "before")
		start := time.Now()
		harness.StartBroker(t, s, broker.Config{Ladder: harness.Ladder(t, "1s 5s 1m")})
		time.Sleep(time.Until(start.Add(59 * time.Minute)))
		unsealed(2, "beside")
		c.Publish("delayin.61s.orders.x", "hops")
		if got := c.Arrivals("DELAY_1m"); len(got) != 1 || got[0].Header.Get(message.HeaderFormat) != "1" ||
			got[0].Header.Get(message.HeaderSeal) == "" {
			time.Sleep(time.Second)
			if got = c.Arrivals("DELAY_1m"); len(got) != 1 || got[0].Header.Get(message.HeaderFormat) != "1" ||
				got[0].Header.Get(message.HeaderSeal) == "" {
				t.Errorf("a level holds %+v, want a message of format 1 with a seal", got)
			}
		}
		time.Sleep(time.Until(start.Add(61 * time.Minute)))
		unsealed(3, "after")
		c.Publish("delayin.61s.orders.x", "hops sealed")
		time.Sleep(time.Second)
		if got := c.Arrivals("DELAY_1m"); len(got) != 1 || got[0].Header.Get(message.HeaderFormat) != "2" ||
			got[0].Header.Get(message.HeaderSeal) == "" {
			t.Errorf("a level holds %+v, want a message of format 2 with a seal", got)
		}
		time.Sleep(time.Hour)
		if got := harness.Bodies(in.All()); got != "before beside hops hops sealed" {
			t.Errorf("came %q", got)
		}
		if got := harness.Bodies(c.Dead()[string(message.BadInternal)]); got != "after" {
			t.Errorf("became bad_internal: %q, want the unsealed messages after the hour", got)
		}
	})
}

// TestNoStreamTakesTheSecretAlong deletes each kind of stream in turn. Sealed messages are still trusted, and the
// stream that replaces the deleted one has the same secret in its metadata.
func TestNoStreamTakesTheSecretAlong(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := broker.Config{Ladder: harness.Ladder(t, "1s 5s 1m"), MaxOwners: 2}
		b := harness.StartBroker(t, s, cfg)
		c := harness.NewClient(t, s)
		in := c.Subscribe("orders.>")
		secrets := func() map[string]string {
			all := make(map[string]string)
			list := c.JS.ListStreams(context.Background())
			for info := range list.Info() {
				marks := info.Config.Metadata
				all[marks["delaybroker.secret"]+" "+marks["delaybroker.sealed"]] = info.Config.Name
			}
			return all
		}
		before := secrets()
		for _, stream := range []string{"DELAY_OWNERS", "DELAY_INTAKE", "DELAY_DEAD", "DELAY_1s", "DELAY_RETRY_30s"} {
			c.Publish("delayin.70s.orders.x", stream)
			time.Sleep(time.Second) // it is in DELAY_1m now, sealed
			b.Stop()
			c.Remove(stream)
			b = harness.StartBroker(t, s, cfg)
			if got := secrets(); fmt.Sprint(len(got), len(before)) != "1 1" ||
				!slices.Equal(sortedKeys(got), sortedKeys(before)) {
				t.Errorf("without %s: the streams say %v, want %v", stream, got, before)
			}
			time.Sleep(2 * time.Minute)
		}
		if got := harness.Bodies(in.All()); got != "DELAY_1s DELAY_DEAD DELAY_INTAKE DELAY_OWNERS DELAY_RETRY_30s" {
			t.Errorf("came %q, want one for each stream that was lost", got)
		}
		c.CheckNoDead()
	})
}

func sortedKeys(m map[string]string) []string {
	var all []string
	for k := range m {
		all = append(all, k)
	}
	slices.Sort(all)
	return all
}

// TestSecretIsNeededWhereOthersSeal: a broker without the secret of the other instances does not start, since they
// would consider its messages forged. A broker that provisions nothing, on streams without seals in their metadata,
// works without a secret, and logs the consequence.
func TestSecretIsNeededWhereOthersSeal(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		secret := []string{"kept by the operator, not by NATS"}
		first := harness.StartBroker(t, s, broker.Config{Ladder: harness.Ladder(t, "1s 1m"), Secrets: secret})
		c := harness.NewClient(t, s)
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
		if got := harness.Bodies(in.All()); got != "sealed" {
			t.Errorf("after the change of the secret came %q", got)
		}
		second.Stop()

		strip(c, "delaybroker.sealed")
		log := harness.NewCountingLog()
		b, err := broker.New(broker.Links{Read: s.Connect(), Write: s.Connect(), Deliver: s.Connect(),
			Control: s.Connect()},
			broker.Config{Ladder: harness.Ladder(t, "1s 1m"), Log: slog.New(log)})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- b.Run(ctx) }()
		<-b.Ready()
		c.Publish("delayin.61s.orders.x", "unsealed")
		time.Sleep(2 * time.Minute)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if got := harness.Bodies(in.All()); got != "sealed unsealed" {
			t.Errorf("without a secret came %q", got)
		}
		if got := log.Of("messages between lanes need no seal"); got != 1 {
			t.Errorf("the log says %d times what that means, want once", got)
		}
		c.CheckNoDead()
	})
}

// TestWhoSeesMetadataSeesTheSecret: a user who may ask for information on streams sees a secret that is in their
// metadata. A secret set by DELAY_SECRET is not there.
func TestWhoSeesMetadataSeesTheSecret(t *testing.T) {
	t.Parallel()
	const own = "kept by the operator, not by NATS"
	for _, secrets := range [][]string{nil, {own}} {
		asTenants(t, broker.Config{Secrets: secrets}, []string{"$JS.API.STREAM.INFO.*"},
			func(t *testing.T, admin, orders, _ *harness.Client) {
				st := orders.Stream("DELAY_INTAKE")
				metadata := st.CachedInfo().Config.Metadata
				if has := metadata["delaybroker.secret"] != ""; has != (secrets == nil) {
					t.Errorf("with DELAY_SECRET %q the metadata is %v", secrets, metadata)
				}
				if strings.Contains(fmt.Sprint(metadata), own) {
					t.Errorf("the metadata holds DELAY_SECRET: %v", metadata)
				}
				if m, err := admin.JS.Stream(context.Background(), "DELAY_INTAKE"); err != nil ||
					m.CachedInfo().Config.Metadata["delaybroker.sealed"] == "" {
					t.Errorf("nothing says from when messages are sealed: %v", err)
				}
			})
	}
}
