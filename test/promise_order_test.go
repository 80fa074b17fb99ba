package test

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"delaybroker/broker"
	"delaybroker/test/natstest"
)

// TestOldestDueFirstHoweverOverdue: what is overdue by less than a second goes out behind what is overdue by more.
func TestOldestDueFirstHoweverOverdue(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		a := startBroker(t, s, broker.Config{})
		c := newClient(t, s)
		c.target("ORDERS", "orders.>")
		a.stop()
		for i := range 30 {
			c.publish("delay.1s.orders.x", fmt.Sprintf("%03d", i))
			time.Sleep(100 * time.Millisecond)
		}
		startBroker(t, s, broker.Config{})
		time.Sleep(time.Minute)
		last := ""
		for _, m := range c.arrivals("ORDERS") {
			if m.Body < last {
				t.Errorf("%s came behind %s", m.Body, last)
			}
			last = m.Body
		}
	})
}

// TestOldestDueFirstInEveryLane is the end of 35 seconds without a broker, at 500 messages a second for many levels and
// the intake, all to one target. Within a lane, the oldest due goes out first, strictly. Across lanes, no message comes
// behind one that was due more than a tenth of a second later.
func TestOldestDueFirstInEveryLane(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		levels := strings.Fields("1s 3s 5s 7s 10s 20s 30s 45s")
		a := startBroker(t, s, broker.Config{})
		c := newClient(t, s)
		c.target("ORDERS", "orders.>")
		a.stop()
		const count = 500 * 35
		rng := rand.New(rand.NewPCG(3, 5))
		for i := range count {
			subject := "delay." + levels[rng.IntN(len(levels))]
			if i%3 == 0 {
				subject = fmt.Sprintf("delayin.%dms", 1+rng.IntN(60_000))
			}
			lane := strings.ReplaceAll(subject, ".", "-")
			if i%3 == 0 {
				lane = "intake"
			}
			if err := c.nc.Publish(subject+".orders.x", []byte(lane)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Millisecond)
		}
		back := time.Now()
		startBroker(t, s, broker.Config{})
		time.Sleep(2 * time.Minute)
		got := c.arrivals("ORDERS")
		if len(got) != count {
			t.Fatalf("%d arrived, want %d", len(got), count)
		}
		lanes := make(map[string]time.Time)
		var latest time.Time
		overdue := 0
		for i, m := range got {
			if m.Due.After(back) {
				if !m.At.Equal(m.Due) {
					t.Fatalf("%s came at %s, due %s", m.Body, m.At, m.Due)
				}
				continue
			}
			if overdue++; !m.At.Equal(back) {
				t.Fatalf("%s came at %s, want all that was overdue at %s", m.Body, m.At, back)
			}
			if m.Due.Before(lanes[m.Body]) {
				t.Fatalf("number %d, %s, was due %s, and one before it in its lane %s", i, m.Body, m.Due, lanes[m.Body])
			}
			if latest.Sub(m.Due) > 100*time.Millisecond {
				t.Fatalf("number %d, %s, was due %s, one before it %s", i, m.Body, m.Due, latest)
			}
			lanes[m.Body] = m.Due
			if m.Due.After(latest) {
				latest = m.Due
			}
		}
		if overdue < count/3 {
			t.Errorf("%d were overdue: too few to tell", overdue)
		}
		c.checkEmpty()
	})
}

// TestOldestDueFirstBeyondMemory: a level has many times more overdue messages than fit into memory. Some of them came
// there by a hop, and are due later than their neighbours. All go out in the order of their due times.
func TestOldestDueFirstBeyondMemory(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		a := startBroker(t, s, broker.Config{Ladder: ladder(t, "10s 1m")})
		c := newClient(t, s)
		c.target("ORDERS", "orders.>")
		for range 50 { // these hop into 10s, due up to ten seconds after they leave it
			c.publish("delayin.19s.orders.x", "")
			time.Sleep(20 * time.Millisecond)
		}
		time.Sleep(time.Second)
		a.stop()
		for range 3000 {
			c.publish("delay.10s.orders.x", "")
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		startBroker(t, s, broker.Config{Ladder: ladder(t, "10s 1m"), HoldMessages: 300})
		time.Sleep(time.Minute)
		var last time.Time
		got := c.arrivals("ORDERS")
		for i, m := range got {
			if m.Due.Before(last) {
				t.Fatalf("number %d was due %s, the one before it %s", i, m.Due, last)
			}
			last = m.Due
		}
		if len(got) != 3050 {
			t.Errorf("%d arrived, want 3050", len(got))
		}
		c.checkEmpty()
	})
}

// TestSpillMakesNothingLate: an intake that holds all it may stores messages that are due much later in levels. It
// takes no level that is longer than the time that remains, where a message would wait behind those that are due later.
func TestSpillMakesNothingLate(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		startBroker(t, s, broker.Config{Ladder: ladder(t, "1m 10m 1h"), HoldMessages: 512})
		c := newClient(t, s)
		c.target("ORDERS", "orders.>")
		c.many("delay.1m.orders.level", 1000) // so that the level, which holds 256, reads no further
		time.Sleep(time.Second)
		const count = 2000
		for i := range count {
			c.publish("delayin.20s.orders.x", fmt.Sprint(i))
		}
		time.Sleep(5 * time.Minute)
		n := 0
		for _, m := range c.arrivals("ORDERS") {
			if m.Subject != "orders.x" {
				continue
			}
			if n++; !m.At.Equal(m.Due) {
				t.Fatalf("%s came %s late", m.Body, m.At.Sub(m.Due))
			}
		}
		if n != count {
			t.Errorf("%d arrived, want %d", n, count)
		}
	})
}

// TestPrefixChanged says what a changed prefix leaves behind.
func TestPrefixChanged(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		const words = "messages wait for ever under another prefix"
		start := func(prefix string) (*instance, int) {
			log := newCountingLog()
			i := startBroker(t, s, broker.Config{Prefix: prefix, Log: slog.New(log)})
			return i, log.of(words)
		}
		a, said := start("delay")
		c := newClient(t, s)
		in := c.subscribe("orders.>")
		c.publish("delay.1m.orders.x", "x")
		if b, of := start("beside"); said+of != 0 { // whose messages a broker reads
			t.Errorf("beside a broker that reads them, it says %d times that messages are left behind", said+of)
		} else {
			b.stop()
		}
		a.stop()
		b, said := start("later")
		if said != 1 {
			t.Errorf("after the prefix was changed, it says %d times that messages are left behind, want once", said)
		}
		time.Sleep(time.Hour)
		if got := len(in.all()); got != 0 {
			t.Errorf("%d came without a broker of their prefix", got)
		}
		b.stop()
		start("delay")
		time.Sleep(time.Minute)
		if got := len(in.all()); got != 1 {
			t.Errorf("%d came when the prefix was changed back, want 1", got)
		}
	})
}
