package test

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
	"delaybroker/broker/dead"
	"delaybroker/broker/deliver"
	"delaybroker/broker/message"
	"delaybroker/test/natstest"
)

// box is the dead letters as an operator on this connection sees them.
func (c *client) box() *dead.Box {
	c.t.Helper()
	names, err := message.NewNames("delay")
	if err != nil {
		c.t.Fatal(err)
	}
	return dead.New(dead.Config{Conn: c.nc, JetStream: c.js, APIPrefix: "$JS.API", Policy: message.Policy{Names: names}, Lane: "1s"})
}

// letters are all dead letters.
func (c *client) letters(box *dead.Box) []dead.Letter {
	c.t.Helper()
	var all []dead.Letter
	for l, err := range box.List(context.Background(), dead.Query{}) {
		if err != nil {
			c.t.Fatalf("list dead letters: %v", err)
		}
		all = append(all, l)
	}
	return all
}

func (c *client) letter(box *dead.Box) dead.Letter {
	c.t.Helper()
	all := c.letters(box)
	if len(all) != 1 {
		c.t.Fatalf("%d dead letters, want one", len(all))
	}
	return all[0]
}

// impatient gives up after two refusals, and takes nobody's listening for a refusal.
func impatient(t *testing.T) broker.Config {
	t.Helper()
	modes, err := deliver.ParseModes("stream")
	if err != nil {
		t.Fatal(err)
	}
	return broker.Config{Ladder: ladder(t, "1s 10s 1m"), Attempts: 2, Deliver: modes}
}

// TestResentKeepsItsID: a message whose target is missing becomes a dead letter; when the target is there and the letter
// is resent, it arrives once, at once, under the id that it had from the beginning, and the letter is gone.
func TestResentKeepsItsID(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		startBroker(t, s, impatient(t))
		c := newClient(t, s)
		box := c.box()
		start := time.Now()
		c.publish("delay.10s.orders.expire", "body", "X-Order", "42", "Nats-Msg-Id", "order-42")
		time.Sleep(time.Hour)
		l := c.letter(box)
		if l.Code != message.Undelivered || string(l.Data) != "body" || l.User["X-Order"][0] != "42" || l.Letter.Target != "orders.expire" ||
			!l.Due.Equal(start.Add(10*time.Second)) || !l.FirstFailure.Equal(l.Due) {
			t.Errorf("the letter is %+v", l)
		}

		c.target("ORDERS", "orders.>")
		resent := time.Now()
		if err := box.Resend(context.Background(), l, dead.Change{}, resent); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		got := c.arrivals("ORDERS")
		if len(got) != 1 {
			t.Fatalf("%d arrivals, want one", len(got))
		}
		a := got[0]
		if a.ID != l.ID || a.Header.Get("Nats-Msg-Id") != l.ID || a.Body != "body" || a.Header.Get("X-Order") != "42" ||
			a.Header.Get("Delay-Msg-Id") != "order-42" || !a.Due.Equal(l.Due) || !a.At.Equal(resent) {
			t.Errorf("arrived at %s: %+v, want it at %s under %s", a.At, a, resent, l.ID)
		}
		if !strings.HasPrefix(l.ID, "DELAY_10s-1-") {
			t.Errorf("the id is %s, want that of the first stream", l.ID)
		}
		time.Sleep(time.Hour)
		c.checkEmpty()
		if got := len(c.arrivals("ORDERS")); got != 1 {
			t.Errorf("%d arrivals after an hour, want one", got)
		}
	})
}

// TestResentHasAllItsRetries: the attempts begin anew, and a message that dies again is a letter again, also when it dies
// before its first letter is removed.
func TestResentHasAllItsRetries(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		startBroker(t, s, impatient(t))
		c := newClient(t, s)
		box := c.box()
		c.publish("delayin.0s.orders.expire", "body")
		time.Sleep(time.Minute)
		first := c.letter(box)
		died := time.Now()
		if err := box.Resend(context.Background(), first, dead.Change{}, died); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second - 1) // one retry follows after a second: the second and last attempt
		synctest.Wait()
		if got := len(c.letters(box)); got != 0 {
			t.Errorf("%d letters before the retry, want none", got)
		}
		time.Sleep(time.Minute)
		second := c.letter(box)
		if second.ID != first.ID || second.Hop <= first.Hop || !second.FirstFailure.Equal(died) || !second.At.Equal(died.Add(time.Second)) {
			t.Errorf("died again at %s: %+v, want it one second after %s", second.At, second, died)
		}
	})
}

// TestResentOnce: an operator who is cut off between the publish and the removal resends again, and the message arrives
// once although the target would store it twice.
func TestResentOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := natstest.RunWith(t, server.Options{
			DontListen: true, JetStream: true, StoreDir: dir, NoAuthUser: "all",
			Users: []*server.User{
				{Username: "all", Password: "a"},
				{Username: "cut", Password: "c", Permissions: &server.Permissions{Publish: &server.SubjectPermission{
					Deny: []string{"$JS.API.STREAM.MSG.DELETE.>"},
				}}},
			},
		})
		startBroker(t, s, impatient(t))
		c := newClient(t, s)
		c.publish("delayin.0s.orders.expire", "body")
		time.Sleep(time.Minute)
		in := c.subscribe("orders.>")
		if _, err := c.js.CreateStream(context.Background(), jetstream.StreamConfig{
			Name: "ORDERS", Subjects: []string{"orders.>"}, Duplicates: 100 * time.Millisecond, // forgets at once
		}); err != nil {
			t.Fatal(err)
		}
		cut := connected(t, s.Connect(nats.UserInfo("cut", "c")))
		l := c.letter(c.box())
		if err := cut.box().Resend(context.Background(), l, dead.Change{}, time.Now()); err == nil || errors.Is(err, dead.ErrStays) {
			t.Fatalf("cut off: got %v", err)
		}
		synctest.Wait()
		if got := len(in.all()); got != 1 {
			t.Fatalf("%d arrivals, want one", got)
		}
		time.Sleep(10 * time.Second)
		if err := c.box().Resend(context.Background(), c.letter(c.box()), dead.Change{}, time.Now()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if got := len(in.all()); got != 1 {
			t.Errorf("%d arrivals, want one", got)
		}
		c.checkEmpty()
	})
}

// TestTenantReadsItsDeadLetters: a tenant with the grants below sees its dead letters when they come, reads those that are
// stored through a consumer that the operator made for it, and sees none of another tenant's.
func TestTenantReadsItsDeadLetters(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tenant := func(name string) *server.User {
		return &server.User{Username: name, Password: name, Permissions: &server.Permissions{
			Publish: &server.SubjectPermission{Allow: []string{
				"delay.*." + name + ".>", "delayin.*." + name + ".>",
				"$JS.API.CONSUMER.MSG.NEXT.DELAY_DEAD." + name, "$JS.ACK.DELAY_DEAD." + name + ".>",
			}},
			Subscribe: &server.SubjectPermission{Allow: []string{name + ".>", "delaydead.*." + name + ".>", "_INBOX_" + name + ".>"}},
		}}
	}
	synctest.Test(t, func(t *testing.T) {
		s := natstest.RunWith(t, server.Options{
			DontListen: true, JetStream: true, StoreDir: dir, NoAuthUser: "broker",
			Users: []*server.User{{Username: "broker", Password: "b"}, tenant("orders"), tenant("payments")},
		})
		startBroker(t, s, impatient(t))
		operator := newClient(t, s)
		tenants := make(map[string]*client)
		live := make(map[string]*inbox)
		for _, name := range []string{"orders", "payments"} {
			if _, err := operator.js.CreateConsumer(context.Background(), "DELAY_DEAD", jetstream.ConsumerConfig{
				Durable: name, FilterSubject: "delaydead.*." + name + ".>", AckPolicy: jetstream.AckExplicitPolicy,
			}); err != nil {
				t.Fatal(err)
			}
			tenants[name] = connected(t, s.Connect(nats.UserInfo(name, name), nats.CustomInboxPrefix("_INBOX_"+name)))
			live[name] = tenants[name].subscribe("delaydead.*." + name + ".>")
		}
		everything := tenants["orders"].subscribe("delaydead.>") // refused, and so silent
		other := tenants["orders"].subscribe("delaydead.*.payments.>")
		for name, c := range tenants {
			c.publish("delayin.0s."+name+".expire", "refused of "+name)
			c.publish("delayin.soon."+name+".expire", "unreadable of "+name)
		}
		time.Sleep(time.Minute)
		for name, c := range tenants {
			want := []string{
				"delaydead.bad_time." + name + ".expire: unreadable of " + name,
				"delaydead.undelivered." + name + ".expire: refused of " + name,
			}
			if got := told(live[name].all()); !slices.Equal(got, want) {
				t.Errorf("%s sees %q, want %q", name, got, want)
			}
			var stored []arrival
			for m := c.pull(name); m != nil; m = c.pull(name) {
				stored = append(stored, arrival{Subject: m.Subject, Body: string(m.Data)})
				if err := m.Ack(); err != nil {
					t.Error(err)
				}
			}
			if got := told(stored); !slices.Equal(got, want) {
				t.Errorf("%s reads %q, want %q", name, got, want)
			}
		}
		if got := len(everything.all()) + len(other.all()); got != 0 {
			t.Errorf("orders sees %d letters that are not its own", got)
		}
		orders := tenants["orders"]
		if m := orders.pull("payments"); m != nil {
			t.Errorf("orders reads %s of payments", m.Subject)
		}
		if _, err := orders.js.CreateConsumer(expiring(t), "DELAY_DEAD", jetstream.ConsumerConfig{}); err == nil {
			t.Error("orders can make a consumer, which could deliver to any subject")
		}
		if accepts(orders.js, "delaydead.expired.orders.x", "forged") {
			t.Error("orders can forge a dead letter")
		}
		if left := operator.letters(operator.box()); len(left) != 4 {
			t.Errorf("%d letters, want 4: reading removes none", len(left))
		}
	})
}

// told are arrivals as words, sorted.
func told(all []arrival) []string {
	var words []string
	for _, a := range all {
		words = append(words, fmt.Sprintf("%s: %s", a.Subject, a.Body))
	}
	slices.Sort(words)
	return words
}

// pull reads the next message of a consumer, with the right to nothing else. It is nil when there is none, and when the
// server does not allow it.
func (c *client) pull(consumer string) *nats.Msg {
	c.t.Helper()
	m, err := c.nc.RequestWithContext(expiring(c.t), "$JS.API.CONSUMER.MSG.NEXT.DELAY_DEAD."+consumer, []byte(`{"batch":1,"no_wait":true}`))
	if err != nil || m.Reply == "" {
		return nil
	}
	return m
}

func expiring(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	t.Cleanup(cancel)
	return ctx
}
