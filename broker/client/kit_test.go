package client_test

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/client"
	"delaybroker/broker/client/clienttest"
	"delaybroker/test/natstest"
)

func newClient(t *testing.T, s *natstest.Server, cfg client.Config, opts ...nats.Option) (*client.Client, *nats.Conn) {
	t.Helper()
	nc := s.Connect(opts...)
	c, err := client.New(s.JetStream(nc), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c, nc
}

func newClientOn(t *testing.T, js jetstream.JetStream, wrap func(client.Store) client.Store) *client.Client {
	t.Helper()
	store, err := client.NewJetStream(js, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.NewOn(wrap(store), client.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func onFake(t testing.TB) (*client.Client, *clienttest.Fake) {
	f := clienttest.New(t, client.Config{})
	return f.Client(), f
}

// recordArrivals subscribes to the targets below shop. The returned function returns the arrivals so far.
func recordArrivals(t *testing.T, nc *nats.Conn) (snapshot func() []client.Arrival) {
	t.Helper()
	var mu sync.Mutex
	var list []client.Arrival
	if _, err := nc.Subscribe("shop.>", func(m *nats.Msg) {
		a, ok := client.ParseArrival(m)
		if !ok {
			t.Errorf("a message to %s without a broker's headers: %v", m.Subject, m.Header)
		}
		mu.Lock()
		defer mu.Unlock()
		list = append(list, a)
	}); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return func() []client.Arrival {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(list)
	}
}

func wantError(t *testing.T, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
