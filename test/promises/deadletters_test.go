package promises

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker"
	"delaybroker/broker/deadletter"
	"delaybroker/broker/deliver"
	"delaybroker/broker/message"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

func letter(c *harness.Client, box *deadletter.Store) deadletter.Letter {
	c.T.Helper()
	all := c.Letters(box)
	harness.CheckCount(c.T, all, 1)
	return all[0]
}

// impatient is a configuration with two attempts, in which only a stream's acknowledgement counts as a delivery.
func impatient(t *testing.T) broker.Config {
	t.Helper()
	modes, err := deliver.ParseModes("stream")
	natstest.NoError(t, err)
	return broker.Config{Ladder: harness.Ladder(t, "1s 10s 1m"), Attempts: 2, Deliver: modes}
}

// TestResentKeepsItsID: a message whose target has no stream becomes a dead letter. When the stream exists and an
// operator resends the letter, the message arrives immediately, once, under its first id. The letter is removed.
func TestResentKeepsItsID(t *testing.T) {
	t.Parallel()
	harness.Bubble(t, impatient(t), func(t *testing.T, c *harness.Client) {
		box := c.LetterStore()
		start := time.Now()
		c.Publish("delay.10s.orders.expire", "body", "X-Order", "42", "Nats-Msg-Id", "order-42")
		time.Sleep(10 * time.Minute)
		l := letter(c, box)
		if l.Code != message.Undelivered || string(l.Data) != "body" || l.User["X-Order"][0] != "42" ||
			l.Letter.Target != "orders.expire" ||
			!l.Due.Equal(start.Add(10*time.Second)) || !l.FirstFailure.Equal(l.Due) {
			t.Errorf("the letter is %+v", l)
		}

		c.Target("ORDERS", "orders.>")
		resent := time.Now()
		natstest.NoError(t, box.Resend(context.Background(), l, deadletter.Resend{}, resent))
		synctest.Wait()
		got := c.Arrivals("ORDERS")
		harness.CheckCount(t, got, 1)
		a := got[0]
		if a.ID != l.ID || a.Header.Get("Nats-Msg-Id") != l.ID || a.Body != "body" || a.Header.Get("X-Order") != "42" ||
			a.Header.Get("Delay-Msg-Id") != "order-42" || !a.Due.Equal(l.Due) || !a.At.Equal(resent) {
			t.Errorf("arrived at %s: %+v, want it at %s under %s", a.At, a, resent, l.ID)
		}
		if !strings.HasPrefix(l.ID, "DELAY_10s-1-") {
			t.Errorf("the id is %s, want that of the first stream", l.ID)
		}
		time.Sleep(10 * time.Minute)
		c.CheckEmpty()
		harness.CheckCount(t, c.Arrivals("ORDERS"), 1)
	})
}

// TestResentHasAllItsRetries: a resent message has all its attempts again. After these attempts fail, the message is a
// dead letter again.
func TestResentHasAllItsRetries(t *testing.T) {
	t.Parallel()
	harness.Bubble(t, impatient(t), func(t *testing.T, c *harness.Client) {
		box := c.LetterStore()
		c.Publish("delayin.0s.orders.expire", "body")
		time.Sleep(time.Minute)
		first := letter(c, box)
		died := time.Now()
		natstest.NoError(t, box.Resend(context.Background(), first, deadletter.Resend{}, died))
		time.Sleep(time.Second - 1) // one retry follows after a second: the second and last attempt
		synctest.Wait()
		harness.CheckCount(t, c.Letters(box), 0)
		time.Sleep(time.Minute)
		second := letter(c, box)
		if second.ID != first.ID || second.Hop <= first.Hop || !second.FirstFailure.Equal(died) ||
			!second.At.Equal(died.Add(time.Second)) {
			t.Errorf("dead letter again at %s: %+v, want one second after %s", second.At, second, died)
		}
	})
}

// TestResentOnce: an operator's resend publishes the message, but cannot remove the letter, here because the server
// forbids it. When the letter is resent again, the duplicate window of the target's stream has passed. Still, the
// message arrives only once.
func TestResentOnce(t *testing.T) {
	t.Parallel()
	natstest.BubbleAs(t, natstest.DenyPublish("$JS.API.STREAM.MSG.DELETE.>"), func(t *testing.T, s *natstest.Server) {
		c := harness.StartBroker(t, s, impatient(t)).NewClient()
		c.Publish("delayin.0s.orders.expire", "body")
		time.Sleep(time.Minute)
		in := c.Subscribe("orders.>")
		c.Create(jetstream.StreamConfig{
			// Shorter than the interval between the resends.
			Name: "ORDERS", Subjects: []string{"orders.>"}, Duplicates: 100 * time.Millisecond,
		})
		cut := harness.WrapConn(t, s.Connect(nats.UserInfo(natstest.LimitedUser, natstest.LimitedUser)))
		l := letter(c, c.LetterStore())
		if err := cut.LetterStore().Resend(context.Background(), l, deadletter.Resend{}, time.Now()); err == nil ||
			errors.Is(err, deadletter.ErrNotResendable) {
			t.Fatalf("the resend without the right to remove: got %v", err)
		}
		synctest.Wait()
		harness.CheckCount(t, in.Arrivals(), 1)
		time.Sleep(10 * time.Second)
		box := c.LetterStore()
		natstest.NoError(t, box.Resend(context.Background(), letter(c, box), deadletter.Resend{}, time.Now()))
		time.Sleep(10 * time.Minute)
		harness.CheckCount(t, in.Arrivals(), 1)
		c.CheckEmpty()
	})
}

// TestTenantReadsItsDeadLetters: a tenant with the grants below receives its new dead letters, and reads the stored
// letters from a consumer that the operator has created. It sees no dead letter of another tenant.
//
// The consumer pushes to a subject of the tenant. A right to pull or to get messages directly would bypass all other
// grants: the server publishes the answer, with a payload of the tenant, on any reply subject that the request names. A
// right to create consumers would do the same, with the deliver subject.
func TestTenantReadsItsDeadLetters(t *testing.T) {
	t.Parallel()
	opts := server.Options{
		NoAuthUser: "broker",
		Users:      []*server.User{{Username: "broker", Password: "b"}, letterReader("orders"), letterReader("payments")},
	}
	natstest.BubbleWith(t, opts, func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, impatient(t))
		operator := harness.NewClient(t, s)
		captured := operator.Subscribe("payments.>")
		tenants := make(map[string]*harness.Client)
		live := make(map[string]*harness.Inbox)
		for _, name := range []string{"orders", "payments"} {
			if _, err := operator.JS.CreatePushConsumer(context.Background(), "DELAY_DEAD", jetstream.ConsumerConfig{
				Durable: name, FilterSubject: "delaydead.*." + name + ".>", DeliverSubject: "_INBOX_" + name + ".dead",
				AckPolicy: jetstream.AckExplicitPolicy,
			}); err != nil {
				t.Fatal(err)
			}
			tenants[name] = harness.WrapConn(t, s.Connect(nats.UserInfo(name, name), nats.CustomInboxPrefix("_INBOX_"+name)))
			live[name] = tenants[name].Subscribe("delaydead.*." + name + ".>")
		}
		others := []*harness.Inbox{ // the server refuses these subscriptions, so nothing arrives
			tenants["orders"].Subscribe("delaydead.>"), tenants["orders"].Subscribe("delaydead.*.payments.>"),
			tenants["orders"].Subscribe("_INBOX_payments.>"),
		}
		for name, c := range tenants {
			c.Publish("delayin.0s."+name+".expire", "refused of "+name)
			c.Publish("delayin.soon."+name+".expire", "unreadable of "+name)
		}
		time.Sleep(time.Minute)
		for name, c := range tenants {
			checkOwnLetters(c, name, live[name])
		}
		for _, other := range others {
			if got := other.Arrivals(); len(got) > 0 {
				t.Errorf("orders sees %q of another tenant", describe(got))
			}
		}

		tryOthersLetters(t, tenants["orders"])
		time.Sleep(time.Minute)
		for _, m := range captured.Arrivals() {
			if strings.Contains(m.Body, "of orders") {
				t.Errorf("orders reached payments with %q, on %s", m.Body, m.Subject)
			}
		}
		if left := operator.Letters(operator.LetterStore()); len(left) != 4 {
			t.Errorf("%d letters, want 4, because a read removes no letter", len(left))
		}
	})
}

// letterReader is a tenant that may read its dead letters.
func letterReader(name string) *server.User {
	return &server.User{Username: name, Password: name, Permissions: &server.Permissions{
		Publish: &server.SubjectPermission{Allow: []string{"delay.*." + name + ".>", "delayin.*." + name + ".>",
			"$JS.ACK.DELAY_DEAD." + name + ".>"}},
		Subscribe: &server.SubjectPermission{Allow: []string{name + ".>", "delaydead.*." + name + ".>",
			"_INBOX_" + name + ".>"}},
	}}
}

// checkOwnLetters expects that a tenant received its two letters when they were stored, and reads each letter once.
func checkOwnLetters(c *harness.Client, name string, live *harness.Inbox) {
	c.T.Helper()
	want := []string{
		"delaydead.bad_time." + name + ".expire: unreadable of " + name,
		"delaydead.undelivered." + name + ".expire: refused of " + name,
	}
	if got := describe(live.Arrivals()); !slices.Equal(got, want) {
		c.T.Errorf("%s sees %q, want %q", name, got, want)
	}
	if got := describe(readPushed(c, "_INBOX_"+name+".dead")); !slices.Equal(got, want) {
		c.T.Errorf("%s reads %q, want %q", name, got, want)
	}
	if again := readPushed(c, "_INBOX_"+name+".dead"); len(again) > 0 {
		c.T.Errorf("%s reads %q again, which it has acknowledged", name, describe(again))
	}
}

// tryOthersLetters makes an operator's requests as the user orders, with reply subjects of the other tenant.
func tryOthersLetters(t *testing.T, orders *harness.Client) {
	t.Helper()
	for _, api := range []string{
		"$JS.API.CONSUMER.MSG.NEXT.DELAY_DEAD.payments", "$JS.API.CONSUMER.MSG.NEXT.DELAY_DEAD.orders",
		"$JS.ACK.DELAY_DEAD.orders.1.1.1.1.0",
		"$JS.API.DIRECT.GET.DELAY_DEAD.delaydead.bad_time.orders.expire", "$JS.API.STREAM.MSG.GET.DELAY_DEAD",
	} {
		for _, words := range []string{`{"batch":1}`, `{"seq":1}`, "+NXT", ""} {
			natstest.NoError(t, orders.NC.PublishRequest(api, "payments.capture", []byte(words)))
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if _, err := orders.JS.CreatePushConsumer(ctx, "DELAY_DEAD",
		jetstream.ConsumerConfig{DeliverSubject: "payments.capture"}); err == nil {
		t.Error("orders can make a consumer")
	}
	if harness.Accepts(orders.JS, "delaydead.expired.orders.x", "forged") {
		t.Error("orders can forge a dead letter")
	}
}

// readPushed subscribes for a minute, and returns the messages that the consumer pushes.
func readPushed(c *harness.Client, subject string) []harness.Arrival {
	c.T.Helper()
	in := &harness.Inbox{}
	sub, err := c.NC.Subscribe(subject, func(m *nats.Msg) {
		in.Mu.Lock()
		defer in.Mu.Unlock()
		in.Msgs = append(in.Msgs, harness.Arrival{Subject: m.Subject, Body: string(m.Data)})
		if err := m.Ack(); err != nil {
			c.T.Errorf("acknowledge: %v", err)
		}
	})
	natstest.NoError(c.T, err)
	time.Sleep(time.Minute) // longer than the consumer's wait for an acknowledgement
	natstest.NoError(c.T, sub.Unsubscribe())
	return in.Arrivals()
}

// describe returns the subjects and bodies of arrivals, sorted.
func describe(all []harness.Arrival) []string {
	var words []string
	for _, a := range all {
		words = append(words, fmt.Sprintf("%s: %s", a.Subject, a.Body))
	}
	slices.Sort(words)
	return words
}
