package service

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/message"
	"delaybroker/broker/timer/change"
	"delaybroker/test/natstest"
)

// refusals returns an endpoint that refuses each request about one timer.
func refusals(names message.Names) []Endpoint {
	root := names.TimerCall("get")
	return []Endpoint{{
		Name: "get", Root: root, Subjects: []string{root + "*.>"}, Tenant: func(string) string { return "orders" },
		Answer: func(context.Context, string, *nats.Msg) (any, error) { return nil, change.Refusef(400, "no") },
	}}
}

// TestRunAnswersReceivedRequests: a service that stops answers the received requests, and ends its subscriptions.
func TestRunAnswersReceivedRequests(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, on *natstest.Server) {
		names, err := message.NewNames(message.DefaultPrefix)
		if err != nil {
			t.Fatal(err)
		}
		nc := on.Connect()
		s := NewService(Config{
			Conn: nc, Names: names, Endpoints: refusals(names), Log: slog.New(slog.DiscardHandler),
		})
		answers := make(chan *nats.Msg, maxReceived)
		if _, err := on.Connect().ChanSubscribe("_INBOX.asker.*", answers); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		const n = 40
		for i := range n {
			s.requests.msgs <- &nats.Msg{Subject: "delayctl.timer.get._bad.orders.x", Reply: fmt.Sprint("_INBOX.asker.", i)}
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		s.Run(ctx)
		synctest.Wait()
		if len(answers) != n {
			t.Errorf("the service answered %d of %d requests", len(answers), n)
		}
		if left := nc.NumSubscriptions(); left > 0 {
			t.Errorf("%d subscriptions are left", left)
		}
	})
}

// TestBusy: a request that does not fit into the queue is answered with an error immediately.
func TestBusy(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, on *natstest.Server) {
		names, err := message.NewNames(message.DefaultPrefix)
		if err != nil {
			t.Fatal(err)
		}
		s := NewService(Config{Conn: on.Connect(), Names: names, Endpoints: refusals(names)})
		answers := make(chan *nats.Msg, maxReceived)
		if _, err := on.Connect().ChanSubscribe("_INBOX.asker", answers); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for range oneWaiting + 3 { // no worker runs
			s.receive(&nats.Msg{Subject: "delayctl.timer.get.k.orders.x", Reply: "_INBOX.asker"})
		}
		synctest.Wait()
		if len(answers) != 3 {
			t.Fatalf("the service refused %d requests immediately, want 3", len(answers))
		}
		if m := <-answers; m.Header.Get("Nats-Service-Error-Code") != "429" {
			t.Errorf("the refusal has the headers %v, want the code 429", m.Header)
		}
	})
}
