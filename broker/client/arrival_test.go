package client_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker"
	"delaybroker/broker/client"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestArrival: an Arrival has the metadata and the lateness of a message. For a message in a stream, At is the time of
// storage. For a core subscriber, At is the time of the call of ParseArrival.
func TestArrival(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		stop := harness.StartBroker(t, s, broker.Config{Ladder: harness.Ladder(t, "1s 1m")}).Stop
		c, nc := newClient(t, s, client.Config{})
		js := s.JetStream(nc)
		stream, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "SHOP", Subjects: []string{"shop.>"}})
		if err != nil {
			t.Fatal(err)
		}
		sub, err := nc.SubscribeSync("core.x")
		if err != nil {
			t.Fatal(err)
		}
		accepted := time.Now()
		r, err := c.In(t.Context(), "shop.x", time.Minute, nil, client.ID("x/1"))
		if err != nil {
			t.Fatal(err)
		}
		if r, err = c.Lookup(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		if _, err := c.In(t.Context(), "core.x", time.Minute, nil); err != nil {
			t.Fatal(err)
		}
		stop()
		time.Sleep(time.Minute + 7*time.Second)
		harness.StartBroker(t, s, broker.Config{Ladder: harness.Ladder(t, "1s 1m")})
		synctest.Wait()
		time.Sleep(time.Hour)
		consumer, err := stream.OrderedConsumer(t.Context(), jetstream.OrderedConsumerConfig{})
		if err != nil {
			t.Fatal(err)
		}
		m, err := consumer.Next()
		if err != nil {
			t.Fatal(err)
		}
		a, ok := client.ParseJetStreamArrival(m)
		want := client.Arrival{At: a.At}
		want.ID, want.MsgID, want.Accepted, want.Due = r.ID, "x/1", accepted.UTC(), accepted.Add(time.Minute).UTC()
		if !ok || a != want || r.ID == "" {
			t.Errorf("got %+v, %t, want %+v", a, ok, want)
		}
		if got := a.Lateness(); got != 7*time.Second {
			t.Errorf("in the stream: lateness %s, want the 7s of the outage", got)
		}
		plain, err := sub.NextMsgWithContext(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if a, ok = client.ParseArrival(plain); !ok || a.Lateness() != time.Since(a.Due) || a.Lateness() < time.Hour {
			t.Errorf("to a subscriber: got %+v, %t, lateness %s, want the time since Due", a, ok, a.Lateness())
		}
		if a, ok := client.ParseArrival(nats.NewMsg("shop.x")); ok {
			t.Errorf("a message without a broker's headers: got %+v, want none", a)
		}
	})
}
