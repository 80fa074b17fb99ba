package promises

import (
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker"
	"delaybroker/broker/message"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// Changes to streams under a running broker do not stop it. Messages that were accepted and still exist arrive, and so
// do later ones.

// TestConsumerDeleted deletes the broker's consumers.
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
			c.DeleteConsumers(name)
		}
		time.Sleep(time.Second)
		c.Publish("delayin.5s.orders.c", "c")
		c.Publish("delay.45s.orders.d", "d")
		c.CheckArrive("ORDERS", start.Add(7*time.Second), "c")
		c.CheckArrive("ORDERS", start.Add(10*time.Second), "a", "c")
		c.CheckArrive("ORDERS", start.Add(47*time.Second), "a", "c", "d")
		c.CheckArrive("ORDERS", start.Add(time.Hour), "a", "b", "c", "d")
		c.CheckNoDead()
		c.CheckEmpty()
	})
}

// TestStreamPurged purges a level. Messages that the broker had read still arrive, and so do later ones.
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
		got := harness.Bodies(c.Arrivals("ORDERS"))
		// The broker still delivers what it had read before the purge.
		if want := "early0 early1 early2 early3 early4 early5 early6 early7 early8 early9 late"; got != want {
			t.Errorf("arrived %q, want %q", got, want)
		}
		c.CheckEmpty()
	})
}

// TestStreamRecreated deletes a level after many messages and creates it again. The sequences of the new stream begin
// with one, and the position in the old stream must not purge anything there.
func TestStreamRecreated(t *testing.T) {
	t.Parallel()
	harness.Bubble(t, broker.Config{}, func(t *testing.T, c *harness.Client) {
		c.Target("ORDERS", "orders.>")
		for range 1000 {
			c.Publish("delay.1s.orders.old", "old")
		}
		time.Sleep(10 * time.Second)
		level := c.Stream("DELAY_1s")
		c.Publish("delay.1s.orders.held", "held") // on the wheel when its stream goes
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
		if len(got) != 51 {
			t.Fatalf("after the stream came again, %d arrived: %s; want the one held and 50 new", len(got), harness.Bodies(got))
		}
		for _, a := range got {
			if late := a.At.Sub(start.Add(time.Second)); late < 0 || late > 2*time.Second {
				t.Errorf("%s came %s after it was due", a.Body, late)
			}
		}
		c.CheckNoDead()
		c.CheckEmpty()
	})
}

// TestServerRestored sets the server's data back to an earlier state, as a restore from a backup or a power failure
// does. The server then uses some sequences again.
func TestServerRestored(t *testing.T) { // not in parallel: see natstest.DropTimers
	dir, backup := natstest.Dir(t), natstest.Dir(t)
	natstest.BubbleWith(t, server.Options{StoreDir: dir}, func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, broker.Config{Ladder: harness.Ladder(t, "1s 10s 1m")})
		c := harness.NewClient(t, s)
		c.Target("ORDERS", "orders.>")
		for i := range 5 {
			c.Publish("delay.1m.orders.x", fmt.Sprintf("before%d", i))
		}
		time.Sleep(time.Second)
		s.Stop()
		if err := os.CopyFS(backup, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		s.Start()
		time.Sleep(time.Second)
		for i := range 20 {
			c.Publish("delay.1m.orders.x", fmt.Sprintf("forgotten%02d", i))
		}
		time.Sleep(10 * time.Second) // read, and on the wheel
		s.Stop()
		if err := os.RemoveAll(dir + "/jetstream"); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(dir, os.DirFS(backup)); err != nil {
			t.Fatal(err)
		}
		s.Start()
		time.Sleep(5 * time.Second)
		for i := range 10 {
			c.Publish("delay.1m.orders.x", fmt.Sprintf("after%d", i))
		}
		time.Sleep(5 * time.Minute)
		count := make(map[string]int)
		for _, a := range c.Arrivals("ORDERS") {
			count[a.Body]++
		}
		for i := range 5 {
			if body := fmt.Sprintf("before%d", i); count[body] != 1 {
				t.Errorf("%s arrived %d times, want once", body, count[body])
			}
		}
		for i := range 10 {
			if body := fmt.Sprintf("after%d", i); count[body] != 1 {
				t.Errorf("%s arrived %d times, want once", body, count[body])
			}
		}
		c.CheckNoDead()
		c.CheckEmpty()
	})
}

// TestForgedHopID: a client publishes messages under the id of another message's next hop. The level then answers
// "duplicate" to the hop, with the sequence of the client's message. If the broker believed that, the message would be
// lost.
func TestForgedHopID(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		b := harness.StartBroker(t, s, broker.Config{})
		c := harness.NewClient(t, s)
		c.Target("ORDERS", "orders.>")
		b.Stop()
		start := time.Now()
		ack := c.Publish("delayin.90s.orders.victim", "victim")
		id := fmt.Sprintf("%s-%d-%d", ack.Stream, ack.Sequence, start.UnixNano())
		for _, level := range []string{"1m", "45s", "30s", "90m", "20s"} {
			c.Publish("delay."+level+".orders.forger", "forger", jetstream.MsgIDHeader, id+"/1")
		}
		c.Publish("delay.20s.orders.forger", "forger", jetstream.MsgIDHeader, id+"/2")
		harness.StartBroker(t, s, broker.Config{})
		time.Sleep(3 * time.Hour)
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
		c.CheckNoDead()
		c.CheckEmpty()
	})
}

// TestAckLost crashes the broker between a delivery and its commit. The copy that follows has the same ids, so a target
// with a duplicate window stores one message.
func TestAckLost(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		b := harness.StartBroker(t, s, broker.Config{})
		c := harness.NewClient(t, s)
		in := c.Subscribe("orders.>")
		c.Target("ORDERS", "orders.>")
		// The first message waits in front of the second, so that no purge can remove the second after its delivery.
		c.Publish("delayin.2s.orders.first", "first")
		c.Publish("delayin.1s.orders.second", "second")
		time.Sleep(1500 * time.Millisecond)
		b.Crash()
		harness.StartBroker(t, s, broker.Config{})
		time.Sleep(time.Minute)
		if got := harness.Bodies(c.Arrivals("ORDERS")); got != "first second" {
			t.Errorf("the stream holds %q, want one of each", got)
		}
		seen := in.All()
		if got := harness.Bodies(seen); got != "first second×2" {
			t.Errorf("a core subscriber saw %q, want the repetition of the second", got)
		}
		for _, a := range seen[1:] {
			if a.Body == "second" && (a.ID != seen[0].ID || a.Header.Get("Nats-Msg-Id") != a.ID) {
				t.Errorf("the copies have ids %q and %q, want the same", seen[0].ID, a.ID)
			}
		}
	})
}

// TestUnacknowledgedStays crashes the broker while a target has not acknowledged. The messages are still in their
// lanes, and are delivered when the stream of the target exists.
func TestUnacknowledgedStays(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		b := harness.StartBroker(t, s, broker.Config{})
		c := harness.NewClient(t, s)
		in := c.Subscribe("orders.>") // hears it and answers nothing
		c.Publish("delay.1s.orders.x", "x", message.HeaderDeliver, "stream")
		c.Publish("delayin.900ms.orders.x", "y", message.HeaderDeliver, "stream")
		time.Sleep(4 * time.Second)
		if got := harness.Bodies(in.All()); got != "x y" {
			t.Fatalf("the subscriber heard %q, want both", got)
		}
		b.Crash()
		c.Target("ORDERS", "orders.>")
		harness.StartBroker(t, s, broker.Config{})
		time.Sleep(time.Minute)
		if got := harness.Bodies(c.Arrivals("ORDERS")); got != "x y" {
			t.Errorf("the stream holds %q, want both", got)
		}
		c.CheckNoDead()
		c.CheckEmpty()
	})
}

// TestCleanStopNoDuplicates stops the broker in the situation of TestAckLost. No message comes twice, not even to a
// core subscriber.
func TestCleanStopNoDuplicates(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		b := harness.StartBroker(t, s, broker.Config{})
		c := harness.NewClient(t, s)
		in := c.Subscribe("orders.>")
		c.Publish("delayin.2s.orders.first", "first")
		c.Publish("delayin.1s.orders.second", "second")
		c.Publish("delay.1s.orders.third", "third")
		time.Sleep(1500 * time.Millisecond)
		b.Stop()
		harness.StartBroker(t, s, broker.Config{})
		time.Sleep(time.Minute)
		if got := harness.Bodies(in.All()); got != "first second third" {
			t.Errorf("a core subscriber saw %q, want each once", got)
		}
		c.CheckEmpty()
	})
}
