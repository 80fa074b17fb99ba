package promises

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestCommitOfAnOldLook: before it purges a stream, a broker checks that the stream is still the one it read. The test
// delays the answer to that check. Meanwhile it deletes the stream, creates it again and stores as many messages. The
// purge must not remove those.
func TestCommitOfAnOldLook(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		c := harness.NewClient(t, s)
		var armed atomic.Bool
		natstest.Proxy(t, s, func(question string, m *nats.Msg) bool {
			if question != "STREAM.MSG.GET.DELAY_10s" || !armed.CompareAndSwap(true, false) {
				return false
			}
			go func() {
				answer, err := natstest.Request(c.NC, &nats.Msg{Subject: "$JS.API." + question, Data: m.Data}, time.Second)
				if err != nil {
					t.Errorf("ask for the message: %v", err)
					return
				}
				stream, err := c.JS.Stream(context.Background(), "DELAY_10s")
				if err != nil {
					t.Error(err)
					return
				}
				if err := c.JS.DeleteStream(context.Background(), "DELAY_10s"); err != nil {
					t.Errorf("delete: %v", err)
				}
				time.Sleep(100 * time.Millisecond) // the server removes the files in its own time
				if _, err := c.JS.CreateStream(context.Background(), stream.CachedInfo().Config); err != nil {
					t.Errorf("create again: %v", err)
				}
				c.Many("delay.10s.orders.new", 60)
				time.Sleep(3 * time.Second)
				_ = m.Respond(answer.Data)
			}()
			return true
		})
		harness.StartBroker(t, s, broker.Config{Ladder: harness.Ladder(t, "1s 10s 1m"), APIPrefix: natstest.ProxyAPI})
		in := c.Subscribe("orders.>")
		c.Many("delay.10s.orders.old", 50)
		time.Sleep(9 * time.Second)
		armed.Store(true)
		time.Sleep(6 * time.Second)
		stream := c.Stream("DELAY_10s")
		if got := stream.CachedInfo().State.Msgs; got != 60 {
			t.Errorf("%d of 60 new messages are stored while they wait", got)
		}
		time.Sleep(time.Minute)
		if armed.Load() {
			t.Fatal("the broker made sure of nothing")
		}
		count := make(map[string]int)
		for _, m := range in.All() {
			count[m.Subject]++
		}
		if count["orders.old"] != 50 || count["orders.new"] != 60 {
			t.Errorf("%d old and %d new messages came, want 50 and 60", count["orders.old"], count["orders.new"])
		}
	})
}
