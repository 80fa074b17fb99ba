package test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/test/natstest"
)

// TestCommitOfAnOldLook: before it purges a stream, a broker checks that the stream is still the one it read. The test
// delays the answer to that check. Meanwhile it deletes the stream, creates it again and stores as many messages. The
// purge must not remove those.
func TestCommitOfAnOldLook(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		c := newClient(t, s)
		var armed atomic.Bool
		natstest.Proxy(t, s, func(question string, m *nats.Msg) bool {
			if question != "STREAM.MSG.GET.DELAY_10s" || !armed.CompareAndSwap(true, false) {
				return false
			}
			go func() {
				answer, err := natstest.Request(c.nc, &nats.Msg{Subject: "$JS.API." + question, Data: m.Data}, time.Second)
				if err != nil {
					t.Errorf("ask for the message: %v", err)
					return
				}
				stream, err := c.js.Stream(context.Background(), "DELAY_10s")
				if err != nil {
					t.Error(err)
					return
				}
				if err := c.js.DeleteStream(context.Background(), "DELAY_10s"); err != nil {
					t.Errorf("delete: %v", err)
				}
				time.Sleep(100 * time.Millisecond) // the server removes the files in its own time
				if _, err := c.js.CreateStream(context.Background(), stream.CachedInfo().Config); err != nil {
					t.Errorf("create again: %v", err)
				}
				c.many("delay.10s.orders.new", 60)
				time.Sleep(3 * time.Second)
				_ = m.Respond(answer.Data)
			}()
			return true
		})
		startBroker(t, s, broker.Config{Ladder: ladder(t, "1s 10s 1m"), APIPrefix: natstest.ProxyAPI})
		in := c.subscribe("orders.>")
		c.many("delay.10s.orders.old", 50)
		time.Sleep(9 * time.Second)
		armed.Store(true)
		time.Sleep(6 * time.Second)
		stream := c.stream("DELAY_10s")
		if got := stream.CachedInfo().State.Msgs; got != 60 {
			t.Errorf("%d of 60 new messages are stored while they wait", got)
		}
		time.Sleep(time.Minute)
		if armed.Load() {
			t.Fatal("the broker made sure of nothing")
		}
		count := make(map[string]int)
		for _, m := range in.all() {
			count[m.Subject]++
		}
		if count["orders.old"] != 50 || count["orders.new"] != 60 {
			t.Errorf("%d old and %d new messages came, want 50 and 60", count["orders.old"], count["orders.new"])
		}
	})
}
