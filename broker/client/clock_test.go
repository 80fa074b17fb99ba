package client_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/broker/client"
	"delaybroker/levels"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// skewedStore is a store on a host with a wrong clock.
type skewedStore struct {
	client.Store
	skew time.Duration
}

func (s skewedStore) Now() time.Time { return s.Store.Now().Add(s.skew) }

// TestNeverEarlyByAWrongClock: a delay begins with the server's timestamp, and a due time is a time by the server's
// clock. The client's clock affects neither: no message is early, and no accepted request becomes a dead letter.
func TestNeverEarlyByAWrongClock(t *testing.T) {
	t.Parallel()
	inMilliseconds := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	natstest.BubbleAt(t, inMilliseconds, server.Options{}, func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, broker.Config{Ladder: levels.Default()})
		nc := s.Connect()
		var mu sync.Mutex
		arrivals := make(map[string]time.Time)
		if _, err := nc.Subscribe("shop.>", func(m *nats.Msg) {
			mu.Lock()
			defer mu.Unlock()
			arrivals[string(m.Data)] = time.Now()
		}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		want := make(map[string]time.Time)
		for _, skew := range []time.Duration{0, 10 * time.Minute, -10 * time.Minute, 999_999_999} {
			c := newClientOn(t, s.JetStream(nc), func(store client.Store) client.Store { return skewedStore{store, skew} })
			now := time.Now()
			ask := func(name string, delay time.Duration, publish func(body []byte) (client.Receipt, error)) {
				name += skew.String()
				if _, err := publish([]byte(name)); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				want[name] = now.Add(delay + time.Millisecond - 1).Truncate(time.Millisecond)
			}
			for _, delay := range []time.Duration{0, 20 * time.Second, 1234 * time.Millisecond, 17*time.Minute + 1} {
				ask("in "+delay.String()+", ", delay, func(b []byte) (client.Receipt, error) {
					return c.In(context.Background(), "shop.x", delay, b)
				})
			}
			// By a client's clock that is ahead, the time in 1999 ms has already passed.
			for _, delay := range []time.Duration{90 * time.Minute, 1999 * time.Millisecond, 500*time.Millisecond + 1} {
				ask("at "+delay.String()+", ", delay, func(b []byte) (client.Receipt, error) {
					return c.At(context.Background(), "shop.x", now.Add(delay), b)
				})
			}
		}
		time.Sleep(2 * time.Hour)
		mu.Lock()
		defer mu.Unlock()
		for name, due := range want {
			if got := arrivals[name]; !got.Equal(due) {
				t.Errorf("%s: arrived %s after its due time, want 0s", name, got.Sub(due))
			}
		}
	})
}
