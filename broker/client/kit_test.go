package client_test

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/client"
	"delaybroker/broker/client/clienttest"
	"delaybroker/test/natstest"
)

// newClient returns a client on its own connection.
func newClient(t *testing.T, s *natstest.Server, cfg client.Config, opts ...nats.Option) (*client.Client, *nats.Conn) {
	t.Helper()
	nc := s.Connect(opts...)
	c, err := client.New(s.JetStream(nc), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c, nc
}

// onFake returns a client of the fake with a default configuration.
func onFake(t testing.TB) (*client.Client, *clienttest.Fake) {
	f := clienttest.New(t, client.Config{})
	return f.Client(), f
}

// arrivals collects the messages below shop, with their times.
func arrivals(t *testing.T, nc *nats.Conn) (all func() []client.Arrival) {
	t.Helper()
	var mu sync.Mutex
	var list []client.Arrival
	if _, err := nc.Subscribe("shop.>", func(m *nats.Msg) {
		a, ok := client.ParseArrival(m)
		if !ok {
			t.Errorf("%s has no headers of a delay: %v", m.Subject, m.Header)
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
