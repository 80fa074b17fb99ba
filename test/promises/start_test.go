package promises

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestStartWithoutALeader starts a broker while a stream has no leader, so that the server lists it by name only. The
// broker does not consider the stream missing. It waits for a while, then serves the other streams, and this stream
// when it has a leader.
func TestStartWithoutALeader(t *testing.T) {
	for name, tt := range map[string]struct{ away, ready time.Duration }{
		"an election":     {away: 4500 * time.Millisecond, ready: 5 * time.Second},
		"a lost majority": {away: time.Hour, ready: 15 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
				cfg := broker.Config{Ladder: harness.Ladder(t, "1s 10s 1m"), APIPrefix: natstest.ProxyAPI}
				start := time.Now()
				var hidden bool
				api := s.Connect(nats.Name("list"))
				natstest.Proxy(t, s, func(question string, m *nats.Msg) bool {
					if question != "STREAM.LIST" || !hidden || time.Since(start) >= tt.away {
						return false
					}
					go func() { _ = m.Respond(harness.WithoutLeader(t, api, m.Data, "DELAY_10s")) }()
					return true
				})
				harness.StartBroker(t, s, cfg).Stop()
				c := harness.NewClient(t, s)
				in := c.Subscribe("orders.>")
				start, hidden = time.Now(), true
				b := harness.LaunchBroker(t, s, cfg)
				time.Sleep(tt.ready - 1)
				synctest.Wait()
				select {
				case <-b.Broker.Ready():
					t.Errorf("ready before %s", tt.ready)
				default:
				}
				time.Sleep(time.Nanosecond)
				<-b.Broker.Ready()
				if took := time.Since(start); took != tt.ready {
					t.Errorf("ready after %s, want %s", took, tt.ready)
				}
				due := time.Now().Add(10 * time.Second)
				c.Publish("delay.1s.orders.x", "")
				c.Publish("delay.10s.orders.y", "")
				time.Sleep(time.Minute)
				got := in.All()
				harness.CheckCount(t, got, 2)
				if !got[1].At.Equal(due) {
					t.Errorf("the second came %s after it was due", got[1].At.Sub(due))
				}
			})
		})
	}
}
