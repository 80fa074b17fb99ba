package tenants

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/broker/message"
	"delaybroker/test/harness"
)

// resent returns the request with which the owner of a target sends a dead letter again, by the recipe of PROTOCOL.md.
func resent(letter harness.Arrival) *nats.Msg {
	_, rest, _ := strings.Cut(letter.Subject, ".") // without delaydead
	_, target, _ := strings.Cut(rest, ".")         // without the code
	m := harness.NewMsg("delay.1s."+target, letter.Body, "Nats-Msg-Id", letter.Header.Get("Delay-Id")+"/resend")
	for name, values := range letter.Header {
		if message.CanonicalName(name) == "" && !strings.HasPrefix(name, "Nats-") {
			m.Header[name] = values
		}
	}
	for _, name := range []string{message.HeaderDeliver, message.HeaderTTL, message.HeaderMaxAttempts} {
		if value := letter.Header.Get(name); value != "" {
			m.Header.Set(name, value)
		}
	}
	return m
}

// TestTenantResendsItsLetters: the owner of a target subscribes to its dead letters, and sends them again by requests
// with its own rights. A repeated resend is one message. The other tenant gets no letter, and cannot resend one.
func TestTenantResendsItsLetters(t *testing.T) {
	t.Parallel()
	runTenants(t, broker.Config{}, nil, func(t *testing.T, admin, orders, payments *harness.Client) {
		letters, foreign := orders.Subscribe("delaydead.*.orders.>"), payments.Subscribe("delaydead.*.payments.>")
		orders.Publish("delay.1s.orders.late", "hello", message.HeaderMaxAttempts, "1", message.HeaderDeliver, "core",
			"X-Mine", "1")
		payments.Publish("delay.1s.payments.late", "secret", message.HeaderMaxAttempts, "1")
		time.Sleep(5 * time.Second) // nobody listens: both become dead letters
		harness.CheckBodies(t, letters.Arrivals(), "hello")
		harness.CheckBodies(t, foreign.Arrivals(), "secret")
		in := orders.Subscribe("orders.late")
		letter := letters.Arrivals()[0]
		first := orders.Store(resent(letter))
		again := orders.Store(resent(letter))
		if !again.Duplicate || again.Sequence != first.Sequence {
			t.Errorf("the repeated resend is answered %+v, the first %+v", again, first)
		}
		stolen := foreign.Arrivals()[0]
		for client, m := range map[*harness.Client]*nats.Msg{payments: resent(letter), orders: resent(stolen)} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if ack, err := client.JS.PublishMsg(ctx, m); err == nil {
				t.Errorf("the resend on %s by another tenant is stored: %+v", m.Subject, ack)
			}
			cancel()
		}
		time.Sleep(10 * time.Second)
		harness.CheckBodies(t, in.Arrivals(), "hello")
		for _, a := range in.Arrivals() {
			if a.Header.Get("X-Mine") != "1" || a.Header.Get("Delay-Error") != "" {
				t.Errorf("the message has the headers %v", a.Header)
			}
		}
		// The letters stay in the stream until an operator removes them.
		harness.CheckBodies(t, admin.Arrivals("DELAY_DEAD"), "hello secret")
	})
}
