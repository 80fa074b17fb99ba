package tenants

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
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
	"delaybroker/broker/inspect"
	"delaybroker/broker/message"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// This file tests tenants that share an account, with the rights of permissions/tenants.conf. NATS checks the subjects
// on which the tenants publish, and not their reply subjects.

// runTenants runs a broker and the tenants of tenants.conf. The tenant "orders" may also publish on the given subjects.
func runTenants(
	t *testing.T, cfg broker.Config, more []string, f func(t *testing.T, admin, orders, payments *harness.Client),
) {
	opts := natstest.Options(t, tenantsConf)
	for _, u := range opts.Users {
		if u.Username == "orders" {
			u.Permissions.Publish.Allow = append(u.Permissions.Publish.Allow, more...)
		}
	}
	natstest.BubbleWith(t, opts, func(t *testing.T, s *natstest.Server) {
		cfg.Ladder, cfg.Attempts = harness.Ladder(t, "1s 3s 5s 1m"), 3
		harness.StartBroker(t, s, cfg, natstest.AdminLogin())
		f(t, harness.WrapConn(t, s.Connect(natstest.AdminLogin())), connect(t, s, "orders"), connect(t, s, "payments"))
	})
}

// TestForgedAckLosesNothing: a tenant sees the reply subject of one of its deliveries, and guesses other reply
// subjects. It makes the server put the acknowledgements of the tenant's own requests there. A message that waits for
// the acknowledgement of another tenant's silent target does not count as delivered.
func TestForgedAckLosesNothing(t *testing.T) {
	t.Parallel()
	runTenants(t, broker.Config{}, nil, func(t *testing.T, admin, orders, payments *harness.Client) {
		payments.SilentTarget("payments.capture")
		var reply string
		natstest.Handle(t, orders.NC, "orders.>", func(m *nats.Msg) { reply = m.Reply })
		payments.Publish("delay.5s.payments.capture", "victim", message.HeaderDeliver, "stream")
		orders.Publish("delay.3s.orders.x", "probe")
		time.Sleep(5*time.Second + 100*time.Millisecond)
		synctest.Wait()
		i := strings.LastIndexByte(reply, '.')
		neighbours := guessTokens(reply[i+1:])
		if len(neighbours) < 100 {
			t.Fatalf("%q has only %d neighbours", reply, len(neighbours))
		}
		for _, token := range neighbours {
			natstest.NoError(t, orders.NC.PublishRequest("delay.1m.orders.x", reply[:i+1]+token, []byte("x")))
		}
		time.Sleep(10 * time.Minute)
		letters := admin.DeadLetters()[string(message.Undelivered)]
		if n := len(slices.DeleteFunc(letters, func(a harness.Arrival) bool { return a.Body != "victim" })); n != 1 {
			t.Errorf("the message is neither delivered nor a dead letter: %d letters, want 1", n)
		}
	})
}

// guessTokens returns guesses of other tokens: the numbers after a token, in several notations.
func guessTokens(token string) []string {
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

// TestOwnStreamAcknowledgesNoDelivery: a subscriber of a target sees the reply subject of each delivery. It can make
// one of the broker's own streams put an acknowledgement there. The broker does not accept this as the target's
// acknowledgement.
func TestOwnStreamAcknowledgesNoDelivery(t *testing.T) {
	t.Parallel()
	runTenants(t, broker.Config{}, nil, func(t *testing.T, admin, orders, _ *harness.Client) {
		natstest.Handle(t, orders.NC, "orders.>", func(m *nats.Msg) {
			_ = orders.NC.PublishRequest("delay.1m.orders.ack", m.Reply, []byte("x"))
		})
		orders.Publish("delay.5s.orders.x", "held", message.HeaderDeliver, "stream")
		time.Sleep(10 * time.Minute)
		letters := slices.DeleteFunc(admin.DeadLetters()[string(message.Undelivered)],
			func(a harness.Arrival) bool { return a.Body != "held" })
		harness.CheckCount(t, letters, 1)
	})
}

// TestRelayedMessagesAreUnproven: NATS can publish a tenant's message on a subject of the broker, if the tenant reads
// its own stream with this reply subject, or if another user creates a consumer with this deliver subject. The broker
// trusts no such message, whatever its headers. It does not deliver the messages, and a resend from the dead letters
// fails with ErrUnproven.
func TestRelayedMessagesAreUnproven(t *testing.T) {
	t.Parallel()
	more := []string{"$JS.API.DIRECT.GET.ORDERS", "orders.own.>"}
	runTenants(t, broker.Config{}, more, func(t *testing.T, admin, orders, payments *harness.Client) {
		admin.Create(jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.own.>"}, AllowDirect: true})
		got := payments.Subscribe("payments.>")
		now := time.Now()
		hop := message.Request{ID: "DELAY_1m-1-1", Due: now, Accepted: now}.HopHeader()
		state := []string{
			message.HeaderFormat, "1", message.HeaderHop, "1", message.HeaderID, "DELAY_1m-1-1",
			message.HeaderDue, now.UTC().Format(time.RFC3339Nano), message.HeaderAccepted, now.UTC().Format(time.RFC3339Nano),
			message.HeaderState, hop[message.HeaderState][0],
			message.HeaderErrorCode, "undelivered", message.HeaderError, "x", message.HeaderSeal,
			"AAAAAAAA.AAAAAAAAAAAAAAAAAAAAAA",
		}
		orders.Publish("orders.own.x", "forged", state...)
		orders.Publish("orders.own.x", "forged", state[:len(state)-2]...)
		hops := []string{"delaysys.hop.1s.payments.capture", "delaysys.hop.1m.payments.capture",
			"delaysys.retry.1s.payments.capture"}
		letter := "delaydead.undelivered.payments.capture"
		for _, subject := range append(hops, letter) {
			for seq := range 2 {
				natstest.NoError(t, orders.NC.PublishRequest("$JS.API.DIRECT.GET.ORDERS", subject,
					fmt.Appendf(nil, `{"seq":%d}`, seq+1)))
			}
		}
		for i, subject := range append(hops, letter) {
			if _, err := admin.JS.CreatePushConsumer(context.Background(), "ORDERS",
				jetstream.ConsumerConfig{Name: fmt.Sprint("c", i), DeliverSubject: subject,
					AckPolicy: jetstream.AckNonePolicy}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(10 * time.Minute)
		if all := got.Arrivals(); len(all) > 0 {
			t.Errorf("%q arrived on %s", all[0].Body, all[0].Subject)
		}
		letters := admin.DeadLetters()
		if n := len(letters[string(message.BadInternal)]); n < 2*len(hops) {
			t.Errorf("%d dead letters bad_internal, want at least %d", n, 2*len(hops))
		}
		forged := len(letters[string(message.Undelivered)])
		if forged < 2 {
			t.Errorf("the tenant stored %d forged dead letters, want at least 2", forged)
		}
		if n := checkUnproven(admin); n < 8 {
			t.Errorf("%d letters, want at least 8", n)
		}
		if time.Sleep(time.Minute); len(got.Arrivals()) > 0 {
			t.Error("a forged letter was delivered")
		}
	})
}

// checkUnproven expects the refusal of each resend, since no dead letter has a broker's seal. It returns the number of
// dead letters.
func checkUnproven(c *harness.Client) int {
	c.T.Helper()
	box := c.LetterStore()
	all := c.Letters(box)
	for _, l := range all {
		if err := box.Resend(context.Background(), l, deadletter.Resend{DeliverNow: true},
			time.Now()); !errors.Is(err, deadletter.ErrUnproven) {
			c.T.Errorf("resend %s: %v, want %v", l.Address, err, deadletter.ErrUnproven)
		}
	}
	return len(all)
}

// TestTenantsReadNoInbox: with the rights of tenants.conf, a tenant cannot subscribe to the inboxes of the broker, and
// cannot use the JetStream API.
func TestTenantsReadNoInbox(t *testing.T) {
	t.Parallel()
	runTenants(t, broker.Config{}, nil, func(t *testing.T, _, orders, _ *harness.Client) {
		received := make(chan string, 1000)
		subjects := []string{
			">", "_INBOX.>", "_INBOX_read.>", "_INBOX_write.>", "_INBOX_deliver.>", "_INBOX_control.>",
			"_INBOX_payments.>", "$JS.EVENT.ADVISORY.>", "$JS.API.>",
			"delaysys.>", "delaydead.>", "delayctl.>", "delay.>",
		}
		for _, subject := range subjects {
			natstest.Handle(t, orders.NC, subject, func(m *nats.Msg) { received <- m.Subject })
		}
		orders.Publish("delayin.10s.orders.x", "hops, and is delivered")
		for _, subject := range []string{"STREAM.LIST", "STREAM.INFO.DELAY_INTAKE", "STREAM.MSG.GET.DELAY_INTAKE",
			"DIRECT.GET.DELAY_1s"} {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			if _, err := orders.NC.RequestWithContext(ctx, "$JS.API."+subject, nil); !errors.Is(err,
				context.DeadlineExceeded) {
				t.Errorf("%s: %v, want no answer", subject, err)
			}
			cancel()
		}
		time.Sleep(time.Minute)
		if len(received) > 0 {
			t.Errorf("the tenant received a message on %s", <-received)
		}
	})
}

// TestAnotherStreamAcknowledgesNoLetter: a tenant sees its dead letters and, with them, the reply subject of each.
// While the stream of dead letters is missing, an acknowledgement of another stream on that subject does not count.
func TestAnotherStreamAcknowledgesNoLetter(t *testing.T) {
	t.Parallel()
	runTenants(t, broker.Config{}, nil, func(t *testing.T, admin, orders, _ *harness.Client) {
		admin.Remove("DELAY_DEAD")
		natstest.Handle(t, orders.NC, "delaydead.*.orders.>", func(m *nats.Msg) {
			if string(m.Data) == "forged" {
				return // the forged requests also become dead letters, which the tenant must not answer again
			}
			_ = orders.NC.PublishRequest("delay.1m.orders.ack", m.Reply, []byte("forged"))
		})
		orders.Publish("delayin.soon.orders.x", "unreadable")
		time.Sleep(10 * time.Minute)
		harness.CheckBodies(t, admin.Arrivals("DELAY_INTAKE"), "unreadable")
	})
}

// TestForgedDuplicateOfHop: a client publishes a forged message into the level of a message's next hop, under the id of
// the hop. Then the server acknowledges the hop as a duplicate. The broker reads the stored message, and does not
// accept the message as its own.
func TestForgedDuplicateOfHop(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := broker.Config{Ladder: harness.Ladder(t, "1s 1m"), DedupWindow: time.Hour}
		harness.StartBroker(t, s, cfg).Stop()
		c := harness.NewClient(t, s)
		in := c.Subscribe("payments.>")
		ack := c.Publish("delayin.2m.payments.x", "victim")
		st := c.Stream(ack.Stream)
		m, err := st.GetMsg(context.Background(), ack.Sequence)
		natstest.NoError(t, err)
		r := message.Request{
			ID: message.ID{Stream: ack.Stream, Sequence: ack.Sequence, At: m.Time}.String(), Accepted: m.Time,
			Due: m.Time.Add(2 * time.Minute), Target: "payments.x",
		}
		c.Store(&nats.Msg{Subject: "delaysys.hop.1m.payments.x", Header: nats.Header(r.HopHeader()),
			Data: []byte("forged")})
		harness.StartBroker(t, s, cfg)
		time.Sleep(10 * time.Minute)
		harness.CheckBodies(t, in.Arrivals(), "victim")
		harness.CheckBodies(t, c.DeadLetters()[string(message.BadInternal)], "forged")
	})
}

// TestForgedPauses: a tenant redirects acknowledgements of its own messages to the subjects of the list of pauses and
// of the paused messages. It also redirects an earlier list of pauses. The broker believes none of these messages.
func TestForgedPauses(t *testing.T) {
	t.Parallel()
	runTenants(t, broker.Config{}, nil, func(t *testing.T, admin, orders, payments *harness.Client) {
		o, err := inspect.Open(admin.NC, broker.Config{})
		natstest.NoError(t, err)
		payments.Subscribe("payments.>")
		in := admin.Subscribe("payments.x")
		harness.MustPause(t, o, "payments.>")
		list, err := o.Pauses(context.Background())
		if err != nil || len(list) != 1 {
			t.Fatalf("%v, %v", list, err)
		}
		earlier, err := admin.Stream(harness.PausedStream).GetLastMsgForSubject(context.Background(), "delaysys.pauses")
		natstest.NoError(t, err)
		harness.MustPause(t, o, "orders.>")
		for range 200 {
			for _, subject := range []string{"delaysys.pauses", "delaysys.paused." + list[0].ID + ".payments.x",
				"delaysys.paused.other.payments.x"} {
				natstest.NoError(t, orders.NC.PublishRequest("delay.1m.orders.x", subject, []byte("x")))
			}
		}
		again := &nats.Msg{Subject: "delaysys.pauses", Data: earlier.Data, Header: nats.Header{
			message.HeaderSeal: earlier.Header[message.HeaderSeal],
		}}
		none := &nats.Msg{Subject: "delaysys.pauses", Data: []byte(`{"version":9000000000000000000,"pauses":[]}`)}
		for _, m := range []*nats.Msg{again, none} {
			admin.Store(m) // in place of a redirected answer to a direct get
		}
		payments.Publish("delay.1s.payments.x", "real")
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if all, err := o.Pauses(context.Background()); err != nil || len(all) != 2 {
			t.Errorf("paused: %v, %v, want both patterns", all, err)
		}
		harness.CheckCount(t, in.Arrivals(), 0)
		harness.MustResume(t, o, "payments.>")
		harness.MustResume(t, o, "orders.>")
		time.Sleep(10 * time.Minute)
		harness.CheckBodies(t, in.Arrivals(), "real")
		if letters := admin.DeadLetters()[string(message.BadInternal)]; len(letters) != 400 {
			t.Errorf("%d dead letters bad_internal, want 400", len(letters))
		}
	})
}
