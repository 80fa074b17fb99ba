package test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker"
	"delaybroker/broker/deadletter"
	"delaybroker/broker/message"
	"delaybroker/test/natstest"
)

// This file is about tenants that share an account and have the rights of permissions/tenants.conf. NATS checks on
// which subjects they publish, but not where the answers go.

// asTenants runs a broker and the tenants of tenants.conf. The tenant "orders" has some more rights to publish.
func asTenants(t *testing.T, cfg broker.Config, more []string, f func(t *testing.T, admin, orders, payments *client)) {
	opts := natstest.Options(t, tenantsConf)
	for _, u := range opts.Users {
		if u.Username == "orders" {
			u.Permissions.Publish.Allow = append(u.Permissions.Publish.Allow, more...)
		}
	}
	natstest.BubbleWith(t, opts, func(t *testing.T, s *natstest.Server) {
		cfg.Ladder, cfg.Attempts = ladder(t, "1s 3s 5s 1m"), 3
		startBroker(t, s, cfg, natstest.Everything())
		as := func(name, password string) *client {
			return connected(t, s.Connect(nats.UserInfo(name, password), nats.CustomInboxPrefix("_INBOX_"+name)))
		}
		f(t, connected(t, s.Connect(natstest.Everything())), as("orders", "o"), as("payments", "p"))
	})
}

// TestForgedAckTakesNothingAway: a tenant sees the reply subject of a delivery to itself, guesses others from it, and
// has the server send the acknowledgements of its own requests there. Another tenant's message, whose stream does not
// answer just then, still waits for its own acknowledgement.
func TestForgedAckTakesNothingAway(t *testing.T) {
	t.Parallel()
	asTenants(t, broker.Config{}, nil, func(t *testing.T, admin, orders, payments *client) {
		payments.silent("payments.capture")
		var reply string
		if _, err := orders.nc.Subscribe("orders.>", func(m *nats.Msg) { reply = m.Reply }); err != nil {
			t.Fatal(err)
		}
		payments.publish("delay.5s.payments.capture", "victim", message.HeaderDeliver, "stream")
		orders.publish("delay.3s.orders.x", "probe")
		time.Sleep(5*time.Second + 100*time.Millisecond)
		synctest.Wait()
		i := strings.LastIndexByte(reply, '.')
		neighbours := neighboursOf(reply[i+1:])
		if len(neighbours) < 100 {
			t.Fatalf("%q has only %d neighbours", reply, len(neighbours))
		}
		for _, token := range neighbours {
			if err := orders.nc.PublishRequest("delay.1m.orders.x", reply[:i+1]+token, []byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(10 * time.Minute)
		letters := admin.dead()[string(message.Undelivered)]
		if n := len(slices.DeleteFunc(letters, func(a arrival) bool { return a.Body != "victim" })); n != 1 {
			t.Errorf("the message is neither delivered nor a dead letter (%d): it is gone", n)
		}
	})
}

// neighboursOf returns guesses at other tokens: the numbers after this one, in several notations.
func neighboursOf(token string) []string {
	var all []string
	for k := range uint64(100) {
		for _, base := range []int{10, 16, 36} {
			if n, err := strconv.ParseUint(token, base, 64); err == nil {
				all = append(all, strconv.FormatUint(n+k, base))
			}
		}
		if b, err := base64.RawURLEncoding.DecodeString(token); err == nil && len(b) > 0 {
			for _, i := range []int{0, len(b) / 2, len(b) - 1} {
				near := slices.Clone(b)
				near[i] += byte(k)
				all = append(all, base64.RawURLEncoding.EncodeToString(near))
			}
		}
		all = append(all, strconv.FormatUint(k, 36))
	}
	return slices.DeleteFunc(all, func(s string) bool { return s == token })
}

// TestOwnStreamAcknowledgesNoDelivery: a subscriber of a target sees the reply subject of each delivery. It can have
// one of the broker's own streams send an acknowledgement there. That does not count as the target's.
func TestOwnStreamAcknowledgesNoDelivery(t *testing.T) {
	t.Parallel()
	asTenants(t, broker.Config{}, nil, func(t *testing.T, admin, orders, _ *client) {
		if _, err := orders.nc.Subscribe("orders.>", func(m *nats.Msg) {
			_ = orders.nc.PublishRequest("delay.1m.orders.ack", m.Reply, []byte("x"))
		}); err != nil {
			t.Fatal(err)
		}
		orders.publish("delay.5s.orders.x", "held", message.HeaderDeliver, "stream")
		time.Sleep(10 * time.Minute)
		letters := slices.DeleteFunc(admin.dead()[string(message.Undelivered)],
			func(a arrival) bool { return a.Body != "held" })
		if len(letters) != 1 {
			t.Errorf("%d dead letters, want one: no stream holds the subject", len(letters))
		}
	})
}

// TestRelayedMessagesAreNobodys: two ways let NATS publish a tenant's message on a subject of the broker. The tenant
// reads its own stream and names that subject for the answer; or somebody creates a consumer that delivers there. The
// broker does not trust such messages, whatever their headers say: it delivers none, and resends none from the dead
// letters unless the operator insists.
func TestRelayedMessagesAreNobodys(t *testing.T) {
	t.Parallel()
	more := []string{"$JS.API.DIRECT.GET.ORDERS", "orders.own.>"}
	asTenants(t, broker.Config{}, more, func(t *testing.T, admin, orders, payments *client) {
		admin.create(jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.own.>"}, AllowDirect: true})
		got := payments.subscribe("payments.>")
		now := time.Now().UTC().Format(time.RFC3339Nano)
		state := []string{
			message.HeaderFormat, "1", message.HeaderHop, "1", message.HeaderID, "DELAY_1m-1-1", message.HeaderDue, now,
			message.HeaderAccepted, now,
			message.HeaderErrorCode, "undelivered", message.HeaderError, "x", message.HeaderSeal,
			"AAAAAAAA.AAAAAAAAAAAAAAAAAAAAAA",
		}
		orders.publish("orders.own.x", "forged", state...)
		orders.publish("orders.own.x", "forged", state[:len(state)-2]...)
		hops := []string{"delaysys.hop.1s.payments.capture", "delaysys.hop.1m.payments.capture",
			"delaysys.retry.1s.payments.capture"}
		letter := "delaydead.undelivered.payments.capture"
		for _, subject := range append(hops, letter) {
			for seq := range 2 {
				if err := orders.nc.PublishRequest("$JS.API.DIRECT.GET.ORDERS", subject,
					fmt.Appendf(nil, `{"seq":%d}`, seq+1)); err != nil {
					t.Fatal(err)
				}
			}
		}
		for i, subject := range append(hops, letter) {
			if _, err := admin.js.CreatePushConsumer(context.Background(), "ORDERS",
				jetstream.ConsumerConfig{Name: fmt.Sprint("c", i), DeliverSubject: subject,
					AckPolicy: jetstream.AckNonePolicy}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Hour)
		if all := got.all(); len(all) > 0 {
			t.Errorf("%q came on %s", all[0].Body, all[0].Subject)
		}
		letters := admin.dead()
		if n := len(letters[string(message.BadInternal)]); n < 2*len(hops) {
			t.Errorf("%d dead letters bad_internal, want at least %d", n, 2*len(hops))
		}
		forged := len(letters[string(message.Undelivered)])
		if forged < 2 {
			t.Errorf("%d letters were put among the dead ones, want at least 2 for the test to mean something", forged)
		}
		if n := admin.checkUnproven(); n < 8 {
			t.Errorf("only %d letters", n)
		}
		if time.Sleep(time.Minute); len(got.all()) > 0 {
			t.Error("a forged letter was delivered")
		}
	})
}

// checkUnproven wants no dead letter to be resent, because none is a broker's, and returns how many there are.
func (c *client) checkUnproven() int {
	c.t.Helper()
	box := c.box()
	all := c.letters(box)
	for _, l := range all {
		if err := box.Resend(context.Background(), l, deadletter.Change{AtOnce: true},
			time.Now()); !errors.Is(err, deadletter.ErrUnproven) {
			c.t.Errorf("resend %s: %v, want %v", l.Address, err, deadletter.ErrUnproven)
		}
	}
	return len(all)
}

// TestUnknownKeyIsLookedFor: another instance that provisioned at the same time may have stored a key which this
// instance has not read. It reads the keys again before it gives the message up.
func TestUnknownKeyIsLookedFor(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		log := newCountingLog()
		startBroker(t, s, broker.Config{Ladder: ladder(t, "1s 5s"), Log: slog.New(log)})
		c := newClient(t, s)
		in := c.subscribe("orders.>")
		ctx := context.Background()
		const theirs = "a secret of another instance"
		letters := c.stream("DELAY_DEAD")
		cfg := letters.CachedInfo().Config
		cfg.Metadata["delaybroker.secret"] = theirs
		if _, err := c.js.UpdateStream(ctx, cfg); err != nil {
			t.Fatal(err)
		}
		now := time.Now().UTC().Format(time.RFC3339Nano)
		state := func(n int) []string {
			return []string{message.HeaderFormat, "1", message.HeaderHop, "1", message.HeaderID,
				fmt.Sprintf("DELAY_5s-%d-1", n), message.HeaderDue, now, message.HeaderAccepted, now}
		}
		c.publishSealed(message.NewKeys([]string{theirs}, time.Unix(0, 0)), "delaysys.hop.1s.orders.x", "theirs",
			state(1)...)
		c.publishSealed(message.NewKeys([]string{"nobody's secret at all"}, time.Unix(0, 0)),
			"delaysys.hop.1s.orders.x", "nobody's", state(2)...)
		c.publishSealed(c.keys("delay"), "delaysys.hop.1s.orders.x", "ours", state(3)...)
		time.Sleep(time.Minute)
		if got := bodies(in.all()); got != "ours theirs" {
			t.Errorf("came %q, want ours and theirs", got)
		}
		if got := bodies(c.dead()[string(message.BadInternal)]); got != "nobody's" {
			t.Errorf("became bad_internal: %q, want what nobody's key sealed", got)
		}
	})
}

// strip removes these entries from the metadata of all streams, so that they look like those of an older broker.
func (c *client) strip(names ...string) {
	c.t.Helper()
	list := c.js.ListStreams(context.Background())
	var all []jetstream.StreamConfig
	for info := range list.Info() {
		all = append(all, info.Config)
	}
	for _, cfg := range all {
		for _, name := range names {
			delete(cfg.Metadata, name)
		}
		if _, err := c.js.UpdateStream(context.Background(), cfg); err != nil {
			c.t.Fatal(err)
		}
	}
}

// TestUpgradeFromUnsealed: a newer broker trusts the messages that an older one stored without a seal. For one hour it
// also trusts what the older broker stores beside it, and writes a format that the older one can read. After the hour,
// messages without a seal are not trusted.
func TestUpgradeFromUnsealed(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		older := startBroker(t, s, broker.Config{Ladder: ladder(t, "1s 5s 1m")})
		c := newClient(t, s)
		older.stop()
		c.strip("delaybroker.secret", "delaybroker.sealed")
		in := c.subscribe("orders.>")
		unsealed := func(n int, body string) {
			now := time.Now().UTC().Format(time.RFC3339Nano)
			c.publish("delaysys.hop.1s.orders.x", body, message.HeaderFormat, "1", message.HeaderHop, "1",
				message.HeaderID, fmt.Sprintf("DELAY_5s-%d-1", n), message.HeaderDue, now, message.HeaderAccepted, now)
		}
		unsealed(1, "before")
		start := time.Now()
		startBroker(t, s, broker.Config{Ladder: ladder(t, "1s 5s 1m")})
		time.Sleep(time.Until(start.Add(59 * time.Minute)))
		unsealed(2, "beside")
		c.publish("delayin.61s.orders.x", "hops")
		if got := c.arrivals("DELAY_1m"); len(got) != 1 || got[0].Header.Get(message.HeaderFormat) != "1" ||
			got[0].Header.Get(message.HeaderSeal) == "" {
			time.Sleep(time.Second)
			if got = c.arrivals("DELAY_1m"); len(got) != 1 || got[0].Header.Get(message.HeaderFormat) != "1" ||
				got[0].Header.Get(message.HeaderSeal) == "" {
				t.Errorf("a level holds %+v, want a message of format 1 with a seal", got)
			}
		}
		time.Sleep(time.Until(start.Add(61 * time.Minute)))
		unsealed(3, "after")
		c.publish("delayin.61s.orders.x", "hops sealed")
		time.Sleep(time.Second)
		if got := c.arrivals("DELAY_1m"); len(got) != 1 || got[0].Header.Get(message.HeaderFormat) != "2" ||
			got[0].Header.Get(message.HeaderSeal) == "" {
			t.Errorf("a level holds %+v, want a message of format 2 with a seal", got)
		}
		time.Sleep(time.Hour)
		if got := bodies(in.all()); got != "before beside hops hops sealed" {
			t.Errorf("came %q", got)
		}
		if got := bodies(c.dead()[string(message.BadInternal)]); got != "after" {
			t.Errorf("became bad_internal: %q, want what came unsealed after the hour", got)
		}
	})
}

// TestNoStreamTakesTheSecretAlong deletes each kind of stream in turn. Sealed messages are still trusted, and the
// stream that replaces the deleted one has the same secret in its metadata.
func TestNoStreamTakesTheSecretAlong(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := broker.Config{Ladder: ladder(t, "1s 5s 1m"), MaxOwners: 2}
		b := startBroker(t, s, cfg)
		c := newClient(t, s)
		in := c.subscribe("orders.>")
		secrets := func() map[string]string {
			all := make(map[string]string)
			list := c.js.ListStreams(context.Background())
			for info := range list.Info() {
				marks := info.Config.Metadata
				all[marks["delaybroker.secret"]+" "+marks["delaybroker.sealed"]] = info.Config.Name
			}
			return all
		}
		before := secrets()
		for _, stream := range []string{"DELAY_OWNERS", "DELAY_INTAKE", "DELAY_DEAD", "DELAY_1s", "DELAY_RETRY_30s"} {
			c.publish("delayin.70s.orders.x", stream)
			time.Sleep(time.Second) // it is in DELAY_1m now, sealed
			b.stop()
			c.remove(stream)
			b = startBroker(t, s, cfg)
			if got := secrets(); fmt.Sprint(len(got), len(before)) != "1 1" ||
				!slices.Equal(sortedKeys(got), sortedKeys(before)) {
				t.Errorf("without %s: the streams say %v, want %v", stream, got, before)
			}
			time.Sleep(2 * time.Minute)
		}
		if got := bodies(in.all()); got != "DELAY_1s DELAY_DEAD DELAY_INTAKE DELAY_OWNERS DELAY_RETRY_30s" {
			t.Errorf("came %q, want one for each stream that was lost", got)
		}
		c.checkNoDead()
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

// TestSecretIsNeededWhereOthersSeal: the others would take the messages of a broker without their secret for forged, so
// it refuses to start. A broker that provisions nothing, on streams that do not mention seals, works without a secret,
// and logs what that means.
func TestSecretIsNeededWhereOthersSeal(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		secret := []string{"kept by the operator, not by NATS"}
		first := startBroker(t, s, broker.Config{Ladder: ladder(t, "1s 1m"), Secrets: secret})
		c := newClient(t, s)
		in := c.subscribe("orders.>")
		c.publish("delayin.61s.orders.x", "sealed")
		time.Sleep(time.Second)
		first.stop()
		without := launchBroker(t, s, broker.Config{Ladder: ladder(t, "1s 1m")})
		without.ended = true
		if err := <-without.done; !errors.Is(err, broker.ErrSecret) {
			t.Errorf("a broker without the secret ended with %v, want %v", err, broker.ErrSecret)
		}
		without.close()
		second := startBroker(t, s, broker.Config{Ladder: ladder(t, "1s 1m"),
			Secrets: []string{"a new one, while it is changed", secret[0]}})
		time.Sleep(2 * time.Minute)
		if got := bodies(in.all()); got != "sealed" {
			t.Errorf("after the change of the secret came %q", got)
		}
		second.stop()

		c.strip("delaybroker.sealed")
		log := newCountingLog()
		b, err := broker.New(broker.Links{Read: s.Connect(), Write: s.Connect(), Deliver: s.Connect(),
			Control: s.Connect()},
			broker.Config{Ladder: ladder(t, "1s 1m"), Log: slog.New(log)})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- b.Run(ctx) }()
		<-b.Ready()
		c.publish("delayin.61s.orders.x", "unsealed")
		time.Sleep(2 * time.Minute)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if got := bodies(in.all()); got != "sealed unsealed" {
			t.Errorf("without a secret came %q", got)
		}
		if got := log.of("messages between lanes need no seal"); got != 1 {
			t.Errorf("the log says %d times what that means, want once", got)
		}
		c.checkNoDead()
	})
}

// TestTenantsHearNoInbox: with the rights of tenants.conf, a tenant cannot subscribe to the inboxes of the broker, and
// cannot use the JetStream API.
func TestTenantsHearNoInbox(t *testing.T) {
	t.Parallel()
	asTenants(t, broker.Config{}, nil, func(t *testing.T, _, orders, _ *client) {
		heard := make(chan string, 1000)
		subjects := []string{
			">", "_INBOX.>", "_INBOX_read.>", "_INBOX_write.>", "_INBOX_deliver.>", "_INBOX_control.>",
			"_INBOX_payments.>", "$JS.EVENT.ADVISORY.>", "$JS.API.>",
			"delaysys.>", "delaydead.>", "delayctl.>", "delay.>",
		}
		for _, subject := range subjects {
			if _, err := orders.nc.Subscribe(subject, func(m *nats.Msg) { heard <- m.Subject }); err != nil {
				t.Fatal(err)
			}
		}
		orders.publish("delayin.10s.orders.x", "hops, and is delivered")
		for _, subject := range []string{"STREAM.LIST", "STREAM.INFO.DELAY_INTAKE", "STREAM.MSG.GET.DELAY_INTAKE",
			"DIRECT.GET.DELAY_1s"} {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			if _, err := orders.nc.RequestWithContext(ctx, "$JS.API."+subject, nil); !errors.Is(err,
				context.DeadlineExceeded) {
				t.Errorf("%s: %v, want no answer", subject, err)
			}
			cancel()
		}
		time.Sleep(time.Minute)
		if len(heard) > 0 {
			t.Errorf("it hears %s", <-heard)
		}
	})
}

// TestWhoSeesMetadataSeesTheSecret: a user who may ask for information on streams sees a secret that is in their
// metadata. A secret set by DELAY_SECRET is not there.
func TestWhoSeesMetadataSeesTheSecret(t *testing.T) {
	t.Parallel()
	const own = "kept by the operator, not by NATS"
	for _, secrets := range [][]string{nil, {own}} {
		asTenants(t, broker.Config{Secrets: secrets}, []string{"$JS.API.STREAM.INFO.*"},
			func(t *testing.T, admin, orders, _ *client) {
				st := orders.stream("DELAY_INTAKE")
				metadata := st.CachedInfo().Config.Metadata
				if has := metadata["delaybroker.secret"] != ""; has != (secrets == nil) {
					t.Errorf("with DELAY_SECRET %q the metadata is %v", secrets, metadata)
				}
				if strings.Contains(fmt.Sprint(metadata), own) {
					t.Errorf("the metadata holds DELAY_SECRET: %v", metadata)
				}
				if m, err := admin.js.Stream(context.Background(), "DELAY_INTAKE"); err != nil ||
					m.CachedInfo().Config.Metadata["delaybroker.sealed"] == "" {
					t.Errorf("nothing says from when messages are sealed: %v", err)
				}
			})
	}
}

// TestAnotherStreamAcknowledgesNoLetter: a tenant sees its dead letters and, with them, the reply subject of each.
// While the stream of dead letters is missing, an acknowledgement of another stream on that subject does not count.
func TestAnotherStreamAcknowledgesNoLetter(t *testing.T) {
	t.Parallel()
	asTenants(t, broker.Config{}, nil, func(t *testing.T, admin, orders, _ *client) {
		admin.remove("DELAY_DEAD")
		if _, err := orders.nc.Subscribe("delaydead.*.orders.>", func(m *nats.Msg) {
			if string(m.Data) == "forged" {
				return // the forged requests become dead letters too: answering those would never end
			}
			_ = orders.nc.PublishRequest("delay.1m.orders.ack", m.Reply, []byte("forged"))
		}); err != nil {
			t.Fatal(err)
		}
		orders.publish("delayin.soon.orders.x", "unreadable")
		time.Sleep(10 * time.Minute)
		if got := bodies(admin.arrivals("DELAY_INTAKE")); got != "unreadable" {
			t.Errorf("the intake holds %q, want what no stream of dead letters has", got)
		}
	})
}

// TestForgedCopyIsNotOurs: somebody publishes a forged message where one of ours hops next, under the same id. The
// server then says that ours is a duplicate. The broker looks at the stored message, and does not take it for its own.
func TestForgedCopyIsNotOurs(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := broker.Config{Ladder: ladder(t, "1s 1m"), DedupWindow: time.Hour}
		startBroker(t, s, cfg).stop()
		c := newClient(t, s)
		in := c.subscribe("payments.>")
		ack := c.publish("delayin.2m.payments.x", "victim")
		st := c.stream(ack.Stream)
		m, err := st.GetMsg(context.Background(), ack.Sequence)
		if err != nil {
			t.Fatal(err)
		}
		r := message.Request{
			ID: message.ID{Stream: ack.Stream, Sequence: ack.Sequence, At: m.Time}.String(), Accepted: m.Time,
			Due: m.Time.Add(2 * time.Minute), Target: "payments.x",
		}
		c.store(&nats.Msg{Subject: "delaysys.hop.1m.payments.x", Header: nats.Header(r.HopHeader()),
			Data: []byte("forged")})
		startBroker(t, s, cfg)
		time.Sleep(time.Hour)
		if got := bodies(in.all()); got != "victim" {
			t.Errorf("came %q, want the message that was accepted", got)
		}
		if got := bodies(c.dead()[string(message.BadInternal)]); got != "forged" {
			t.Errorf("became bad_internal: %q", got)
		}
	})
}
