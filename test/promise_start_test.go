package test

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/test/natstest"
)

// TestStartWithoutALeader starts a broker while a stream has no leader, so that the server lists it by name only. The
// broker does not take the stream for missing. It waits for a while, then serves the other streams, and this one when
// it has a leader.
func TestStartWithoutALeader(t *testing.T) {
	for name, tt := range map[string]struct{ away, ready time.Duration }{
		"an election":     {away: 4500 * time.Millisecond, ready: 5 * time.Second},
		"a lost majority": {away: time.Hour, ready: 15 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
				cfg := broker.Config{Ladder: ladder(t, "1s 10s 1m"), APIPrefix: natstest.ProxyAPI}
				start := time.Now()
				var hidden bool
				api := s.Connect(nats.Name("list"))
				natstest.Proxy(t, s, func(question string, m *nats.Msg) bool {
					if question != "STREAM.LIST" || !hidden || time.Since(start) >= tt.away {
						return false
					}
					go func() { _ = m.Respond(withoutLeader(t, api, m.Data, "DELAY_10s")) }()
					return true
				})
				startBroker(t, s, cfg).stop()
				c := newClient(t, s)
				in := c.subscribe("orders.>")
				start, hidden = time.Now(), true
				b := launchBroker(t, s, cfg)
				time.Sleep(tt.ready - 1)
				synctest.Wait()
				select {
				case <-b.broker.Ready():
					t.Errorf("ready before %s", tt.ready)
				default:
				}
				time.Sleep(time.Nanosecond)
				<-b.broker.Ready()
				if took := time.Since(start); took != tt.ready {
					t.Errorf("ready after %s, want %s", took, tt.ready)
				}
				due := time.Now().Add(10 * time.Second)
				c.publish("delay.1s.orders.x", "")
				c.publish("delay.10s.orders.y", "")
				time.Sleep(time.Minute)
				got := in.all()
				if len(got) != 2 {
					t.Fatalf("%d messages came, want 2", len(got))
				}
				if !got[1].At.Equal(due) {
					t.Errorf("the second came %s after it was due", got[1].At.Sub(due))
				}
			})
		})
	}
}

// withoutLeader returns the server's list of streams, with this one listed by name only.
func withoutLeader(t *testing.T, nc *nats.Conn, request []byte, stream string) []byte {
	answer, err := natstest.Request(nc, &nats.Msg{Subject: "$JS.API.STREAM.LIST", Data: request}, time.Second)
	if err != nil {
		t.Errorf("list the streams: %v", err)
		return nil
	}
	var list map[string]any
	if err := json.Unmarshal(answer.Data, &list); err != nil {
		t.Errorf("decode the list: %v", err)
	}
	var described []any
	for _, info := range list["streams"].([]any) {
		if info.(map[string]any)["config"].(map[string]any)["name"] != stream {
			described = append(described, info)
		}
	}
	list["streams"], list["missing"] = described, []string{stream}
	body, err := json.Marshal(list)
	if err != nil {
		t.Errorf("encode the list: %v", err)
	}
	return body
}
