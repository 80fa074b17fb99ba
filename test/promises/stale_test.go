package promises

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestDeposedLeaderIsNoNewHistory: a leader was paused, continues, and does not know yet that another one was elected.
// For a while it answers with an old state of the stream. The broker does not take that for a new stream: it reads
// nothing again, and no message comes twice.
func TestDeposedLeaderIsNoNewHistory(t *testing.T) {
	for _, lasts := range []time.Duration{0, 300 * time.Millisecond, 5 * time.Second, 9 * time.Second} {
		t.Run(lasts.String(), func(t *testing.T) {
			natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
				var mu sync.Mutex // guards the variables below
				var past []byte   // an older answer of the leader
				var until time.Time
				lies := 0
				natstest.Proxy(t, s, func(question string, m *nats.Msg) bool {
					mu.Lock()
					defer mu.Unlock()
					if question != "STREAM.INFO.DELAY_10s" || !time.Now().Before(until) {
						return false
					}
					lies++
					_ = m.Respond(past)
					return true
				})
				harness.StartBroker(t, s, broker.Config{Ladder: harness.Ladder(t, "1s 10s 1m"), APIPrefix: natstest.ProxyAPI})
				c := harness.NewClient(t, s)
				in := c.Subscribe("orders.>")
				for i := range 100 {
					c.Publish("delay.10s.orders.x", fmt.Sprint(i))
				}
				before, err := natstest.Request(c.NC, &nats.Msg{Subject: "$JS.API.STREAM.INFO.DELAY_10s"}, time.Second)
				if err != nil {
					t.Fatal(err)
				}
				for i := range 200 {
					c.Publish("delay.10s.orders.x", fmt.Sprint(100+i))
					time.Sleep(10 * time.Millisecond)
				}
				time.Sleep(7990 * time.Millisecond) // the first are about to be due
				mu.Lock()
				past, until = before.Data, time.Now().Add(lasts)
				mu.Unlock()
				time.Sleep(time.Minute)
				if got := len(in.All()); got != 300 {
					t.Errorf("%d deliveries of 300 messages", got)
				}
				mu.Lock()
				defer mu.Unlock()
				if lies == 0 && lasts > 0 {
					t.Error("the leader was never asked")
				}
			})
		})
	}
}
