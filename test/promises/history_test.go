package promises

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker"
	"delaybroker/broker/message"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestConsumerDeleted deletes consumers of a running broker. All messages arrive.
func TestConsumerDeleted(t *testing.T) {
	t.Parallel()
	cfg := broker.Config{Ladder: harness.Ladder(t, "1s 5s 10s 45s 10m")}
	harness.Bubble(t, cfg, func(t *testing.T, c *harness.Client) {
		c.Target("ORDERS", "orders.>")
		start := time.Now()
		c.Publish("delay.10s.orders.a", "a")
		c.Publish("delayin.1h.orders.b", "b")
		time.Sleep(time.Second)
		for _, name := range []string{"DELAY_10s", "DELAY_INTAKE", "DELAY_45s"} {
			c.DeleteConsumer(name)
		}
		time.Sleep(time.Second)
		c.Publish("delayin.5s.orders.c", "c")
		c.Publish("delay.45s.orders.d", "d")
		c.CheckArrivals("ORDERS", start.Add(7*time.Second), "c")
		c.CheckArrivals("ORDERS", start.Add(10*time.Second), "a", "c")
		c.CheckArrivals("ORDERS", start.Add(47*time.Second), "a", "c", "d")
		c.CheckArrivals("ORDERS", start.Add(time.Hour), "a", "b", "c", "d")
		c.CheckEmpty()
	})
}

// TestStreamPurged purges a level. Messages that the broker had read still arrive, and later messages also.
func TestStreamPurged(t *testing.T) {
	t.Parallel()
	harness.Bubble(t, broker.Config{}, func(t *testing.T, c *harness.Client) {
		c.Target("ORDERS", "orders.>")
		start := time.Now()
		for i := range 10 {
			c.Publish("delay.1m.orders.x", fmt.Sprintf("early%d", i))
		}
		time.Sleep(time.Second)
		c.Purge("DELAY_1m")
		c.Publish("delay.1m.orders.x", "late")
		time.Sleep(time.Until(start.Add(2 * time.Minute)))
		harness.CheckBodies(t, c.Arrivals("ORDERS"),
			"early0 early1 early2 early3 early4 early5 early6 early7 early8 early9 late")
		c.CheckEmpty()
	})
}

// TestStreamRecreated deletes a level after many messages and creates it again. The sequences of the new stream begin
// with one. The broker must not purge the new stream by its position in the old stream.
func TestStreamRecreated(t *testing.T) {
	t.Parallel()
	harness.Bubble(t, broker.Config{}, func(t *testing.T, c *harness.Client) {
		c.Target("ORDERS", "orders.>")
		for range 1000 {
			c.Publish("delay.1s.orders.old", "old")
		}
		time.Sleep(10 * time.Second)
		level := c.Stream("DELAY_1s")
		c.Publish("delay.1s.orders.held", "held") // this message is on the wheel when the stream is deleted
		synctest.Wait()
		c.Remove("DELAY_1s")
		synctest.Wait() // the server removes the files of a stream after its answer
		c.Create(level.CachedInfo().Config)
		start := time.Now()
		for i := range 50 {
			c.Publish("delay.1s.orders.new", fmt.Sprintf("new%02d", i))
		}
		time.Sleep(time.Minute)
		got := c.Arrivals("ORDERS")[1000:]
		harness.CheckCount(t, got, 51)
		for _, a := range got {
			if late := a.At.Sub(start.Add(time.Second)); late < 0 || late > 2*time.Second {
				t.Errorf("%s arrived %s after it was due", a.Body, late)
			}
		}
		c.CheckEmpty()
	})
}

// TestServerRestored resets the server's data to an earlier state, as a restore from a backup or a power failure may
// do. Afterwards the server uses some sequences again. The messages of the backup and the later messages arrive once.
func TestServerRestored(t *testing.T) { // not in parallel: see natstest.DropTimers
	dir, backup := natstest.Dir(t), natstest.Dir(t)
	natstest.BubbleWith(t, server.Options{StoreDir: dir}, func(t *testing.T, s *natstest.Server) {
		c := harness.StartBroker(t, s, broker.Config{Ladder: harness.Ladder(t, "1s 10s 1m")}).NewClient()
		c.Target("ORDERS", "orders.>")
		for i := range 5 {
			c.Publish("delay.1m.orders.x", fmt.Sprintf("before%d", i))
		}
		time.Sleep(time.Second)
		s.Stop()
		natstest.NoError(t, os.CopyFS(backup, os.DirFS(dir)))
		s.Start()
		time.Sleep(time.Second)
		for i := range 20 {
			c.Publish("delay.1m.orders.x", fmt.Sprintf("forgotten%02d", i))
		}
		time.Sleep(10 * time.Second) // the broker has read the messages, which are on the wheel
		s.Stop()
		natstest.NoError(t, os.RemoveAll(dir+"/jetstream"))
		natstest.NoError(t, os.CopyFS(dir, os.DirFS(backup)))
		s.Start()
		time.Sleep(5 * time.Second)
		for i := range 10 {
			c.Publish("delay.1m.orders.x", fmt.Sprintf("after%d", i))
		}
		time.Sleep(5 * time.Minute)
		kept := slices.DeleteFunc(c.Arrivals("ORDERS"), func(a harness.Arrival) bool {
			return strings.HasPrefix(a.Body, "forgotten")
		})
		harness.CheckBodies(t, kept, "after0 after1 after2 after3 after4 after5 after6 after7 after8 after9 "+
			"before0 before1 before2 before3 before4")
		c.CheckEmpty()
	})
}

// TestForgedHopID: a client publishes messages under the id of another message's next hop. The level then answers
// "duplicate" to the hop, with the sequence of the client's message. If the broker believed this answer, the message
// would be lost.
func TestForgedHopID(t *testing.T) {
	t.Parallel()
	harness.BubbleWithBroker(t, broker.Config{}, func(t *testing.T, c *harness.Client, b *harness.Instance) {
		c.Target("ORDERS", "orders.>")
		b.Stop()
		start := time.Now()
		ack := c.Publish("delayin.90s.orders.victim", "victim")
		id := fmt.Sprintf("%s-%d-%d", ack.Stream, ack.Sequence, start.UnixNano())
		for _, level := range []string{"1m", "45s", "30s", "15m", "20s"} {
			c.Publish("delay."+level+".orders.forger", "forger", jetstream.MsgIDHeader, id+"/1")
		}
		c.Publish("delay.20s.orders.forger", "forger", jetstream.MsgIDHeader, id+"/2")
		b.Replace()
		time.Sleep(20 * time.Minute)
		var victims []harness.Arrival
		for _, a := range c.Arrivals("ORDERS") {
			if a.Body == "victim" {
				victims = append(victims, a)
			}
		}
		if len(victims) != 1 || !victims[0].At.Equal(start.Add(90*time.Second)) {
			t.Errorf("the victim arrived %d times: %v; want once, at %s", len(victims), victims,
				start.Add(90*time.Second))
		}
		c.CheckEmpty()
	})
}

// deliverSecond returns when the second of two messages has arrived. The first message waits before it in the lane, so
// no purge removes the second message after its delivery.
func deliverSecond(c *harness.Client) *harness.Inbox {
	c.T.Helper()
	in := c.Subscribe("orders.>")
	c.Publish("delayin.2s.orders.first", "first")
	c.Publish("delayin.1s.orders.second", "second")
	time.Sleep(1500 * time.Millisecond)
	return in
}

// TestAckLost crashes the broker after a delivery, before it removes the message. The duplicate that follows has the
// same ids, so a target with a duplicate window stores one message.
func TestAckLost(t *testing.T) {
	t.Parallel()
	harness.BubbleWithBroker(t, broker.Config{}, func(t *testing.T, c *harness.Client, b *harness.Instance) {
		c.Target("ORDERS", "orders.>")
		in := deliverSecond(c)
		b.Crash()
		b.Replace()
		time.Sleep(time.Minute)
		harness.CheckBodies(t, c.Arrivals("ORDERS"), "first second")
		seen := in.Arrivals()
		harness.CheckBodies(t, seen, "first second×2")
		for _, a := range seen[1:] {
			if a.Body == "second" && (a.ID != seen[0].ID || a.Header.Get("Nats-Msg-Id") != a.ID) {
				t.Errorf("the duplicates have the ids %q and %q, want one id", seen[0].ID, a.ID)
			}
		}
	})
}

// TestUnacknowledgedStays crashes the broker while a target has not acknowledged. The messages are still in their
// lanes, and are delivered when the stream of the target exists.
func TestUnacknowledgedStays(t *testing.T) {
	t.Parallel()
	harness.BubbleWithBroker(t, broker.Config{}, func(t *testing.T, c *harness.Client, b *harness.Instance) {
		in := c.Subscribe("orders.>") // receives the messages and does not reply
		c.Publish("delay.1s.orders.x", "x", message.HeaderDeliver, "stream")
		c.Publish("delayin.900ms.orders.x", "y", message.HeaderDeliver, "stream")
		time.Sleep(4 * time.Second)
		harness.CheckBodies(t, in.Arrivals(), "x y")
		b.Crash()
		c.Target("ORDERS", "orders.>")
		b.Replace()
		time.Sleep(time.Minute)
		harness.CheckBodies(t, c.Arrivals("ORDERS"), "x y")
		c.CheckEmpty()
	})
}

// TestCleanStopNoDuplicates stops the broker in the situation of TestAckLost. No message arrives twice, not even at a
// core subscriber.
func TestCleanStopNoDuplicates(t *testing.T) {
	t.Parallel()
	harness.BubbleWithBroker(t, broker.Config{}, func(t *testing.T, c *harness.Client, b *harness.Instance) {
		c.Publish("delay.1s.orders.third", "third")
		in := deliverSecond(c)
		b.Stop()
		b.Replace()
		time.Sleep(time.Minute)
		harness.CheckBodies(t, in.Arrivals(), "first second third")
		c.CheckEmpty()
	})
}

// TestDeposedLeaderRepeatsNothing: after a suspension of its process, a leader does not know that another server was
// elected. For some time it answers with an old state of the stream; here a proxy gives these answers. The broker does
// not take this state for a new stream: it reads no message again, and no message arrives twice.
func TestDeposedLeaderRepeatsNothing(t *testing.T) {
	for _, staleTime := range []time.Duration{0, 300 * time.Millisecond, 5 * time.Second, 9 * time.Second} {
		t.Run(staleTime.String(), func(t *testing.T) {
			natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
				var mu sync.Mutex // guards the variables below
				var stale []byte  // an older answer of the leader
				var until time.Time
				answers := 0
				natstest.Proxy(t, s, func(question string, m *nats.Msg) bool {
					mu.Lock()
					defer mu.Unlock()
					if question != "STREAM.INFO.DELAY_10s" || !time.Now().Before(until) {
						return false
					}
					answers++
					_ = m.Respond(stale)
					return true
				})
				harness.StartBroker(t, s, broker.Config{Ladder: harness.Ladder(t, "1s 10s 1m"), APIPrefix: natstest.ProxyAPI})
				c := harness.NewClient(t, s)
				in := c.Subscribe("orders.>")
				for i := range 100 {
					c.Publish("delay.10s.orders.x", fmt.Sprint(i))
				}
				before, err := natstest.Request(c.NC, &nats.Msg{Subject: "$JS.API.STREAM.INFO.DELAY_10s"}, time.Second)
				natstest.NoError(t, err)
				for i := range 200 {
					c.Publish("delay.10s.orders.x", fmt.Sprint(100+i))
					time.Sleep(10 * time.Millisecond)
				}
				time.Sleep(7990 * time.Millisecond) // the first messages are almost due
				mu.Lock()
				stale, until = before.Data, time.Now().Add(staleTime)
				mu.Unlock()
				time.Sleep(time.Minute)
				harness.CheckCount(t, in.Arrivals(), 300)
				mu.Lock()
				defer mu.Unlock()
				if answers == 0 && staleTime > 0 {
					t.Error("the broker sent no request to the leader")
				}
			})
		})
	}
}

// TestPurgeOfReplacedStream: before it purges a stream, a broker checks that the stream is still the one it read. The
// test delays the answer to that check. During the delay, it deletes the stream, creates it again and stores new
// messages. The purge must not remove the new messages.
func TestPurgeOfReplacedStream(t *testing.T) {
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
				time.Sleep(100 * time.Millisecond) // the server removes the files asynchronously
				if _, err := c.JS.CreateStream(context.Background(), stream.CachedInfo().Config); err != nil {
					t.Errorf("create again: %v", err)
				}
				c.PublishMany("delay.10s.orders.new", 60)
				time.Sleep(3 * time.Second)
				_ = m.Respond(answer.Data)
			}()
			return true
		})
		harness.StartBroker(t, s, broker.Config{Ladder: harness.Ladder(t, "1s 10s 1m"), APIPrefix: natstest.ProxyAPI})
		in := c.Subscribe("orders.>")
		c.PublishMany("delay.10s.orders.old", 50)
		time.Sleep(9 * time.Second)
		armed.Store(true)
		time.Sleep(6 * time.Second)
		stream := c.Stream("DELAY_10s")
		if got := stream.CachedInfo().State.Msgs; got != 60 {
			t.Errorf("the stream has %d of 60 pending new messages", got)
		}
		time.Sleep(time.Minute)
		if armed.Load() {
			t.Fatal("the broker did not check the stream before the purge")
		}
		count := make(map[string]int)
		for _, m := range in.Arrivals() {
			count[m.Subject]++
		}
		if count["orders.old"] != 50 || count["orders.new"] != 60 {
			t.Errorf("%d old and %d new messages arrived, want 50 and 60", count["orders.old"], count["orders.new"])
		}
	})
}
