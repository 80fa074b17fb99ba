package promises

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"delaybroker/broker"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestOldestDueFirstWithinASecond: overdue messages are sent in the order of their due times, even if these are only a
// tenth of a second apart.
func TestOldestDueFirstWithinASecond(t *testing.T) {
	t.Parallel()
	harness.BubbleWithBroker(t, broker.Config{}, func(t *testing.T, c *harness.Client, a *harness.Instance) {
		c.Target("ORDERS", "orders.>")
		a.Stop()
		for i := range 30 {
			c.Publish("delay.1s.orders.x", fmt.Sprintf("%03d", i))
			time.Sleep(100 * time.Millisecond)
		}
		a.Replace()
		time.Sleep(time.Minute)
		arrivals, last := c.Arrivals("ORDERS"), ""
		harness.CheckCount(t, arrivals, 30)
		for _, m := range arrivals {
			if m.Body < last {
				t.Errorf("%s arrived after %s", m.Body, last)
			}
			last = m.Body
		}
	})
}

// TestOldestDueFirstInEveryLane starts a broker after 35 seconds without a broker, with 500 messages a second to one
// target in many levels and the intake. Within a lane, the messages arrive in the order of due times. Across lanes, a
// message arrives before every message that was due more than a tenth of a second later.
func TestOldestDueFirstInEveryLane(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		levels := strings.Fields("1s 3s 5s 7s 10s 20s 30s 45s")
		a, c := harness.Start(t, s, broker.Config{})
		c.Target("ORDERS", "orders.>")
		a.Stop()
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
			natstest.NoError(t, c.NC.Publish(subject+".orders.x", []byte(lane)))
			time.Sleep(2 * time.Millisecond)
		}
		back := time.Now()
		harness.StartBroker(t, s, broker.Config{})
		time.Sleep(2 * time.Minute)
		got := c.Arrivals("ORDERS")
		harness.CheckCount(t, got, count)
		lanes := make(map[string]time.Time)
		var latest time.Time
		overdue := 0
		for i, m := range got {
			if m.Due.After(back) {
				if !m.At.Equal(m.Due) {
					t.Fatalf("%s arrived at %s, due %s", m.Body, m.At, m.Due)
				}
				continue
			}
			if overdue++; !m.At.Equal(back) {
				t.Fatalf("%s arrived at %s, want all overdue messages at %s", m.Body, m.At, back)
			}
			if m.Due.Before(lanes[m.Body]) {
				t.Fatalf("message %d, of %s, was due at %s, and arrived after one of its lane that was due at %s", i, m.Body,
					m.Due, lanes[m.Body])
			}
			if latest.Sub(m.Due) > 100*time.Millisecond {
				t.Fatalf("message %d, of %s, was due at %s, and arrived after one that was due at %s", i, m.Body, m.Due, latest)
			}
			lanes[m.Body] = m.Due
			if m.Due.After(latest) {
				latest = m.Due
			}
		}
		if overdue < count/3 {
			t.Errorf("%d messages were overdue, want at least %d", overdue, count/3)
		}
		c.CheckEmpty()
	})
}

// TestOldestDueFirstBeyondMemory: a level has many times more overdue messages than fit into memory. Some of these
// messages came by a hop, and are due later than their neighbours. The broker sends all in the order of their due
// times.
func TestOldestDueFirstBeyondMemory(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		a, c := harness.Start(t, s, broker.Config{Ladder: harness.Ladder(t, "10s 1m")})
		c.Target("ORDERS", "orders.>")
		for range 50 { // these messages hop into the level 10s, and are due up to ten seconds after they leave it
			c.Publish("delayin.19s.orders.x", "")
			time.Sleep(20 * time.Millisecond)
		}
		time.Sleep(time.Second)
		a.Stop()
		for range 3000 {
			c.Publish("delay.10s.orders.x", "")
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		harness.StartBroker(t, s, broker.Config{Ladder: harness.Ladder(t, "10s 1m"), HoldMessages: 300})
		time.Sleep(time.Minute)
		var last time.Time
		got := c.Arrivals("ORDERS")
		for i, m := range got {
			if m.Due.Before(last) {
				t.Fatalf("message %d was due at %s, and the one before it at %s", i, m.Due, last)
			}
			last = m.Due
		}
		harness.CheckCount(t, got, 3050)
		c.CheckEmpty()
	})
}

// TestSpillMakesNothingLate: the intake's memory is full, and every level is longer than the remaining time of the
// intake's messages. The broker moves none of them into a level, where they would wait behind messages that are due
// later.
func TestSpillMakesNothingLate(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	cfg := broker.Config{Ladder: harness.Ladder(t, "1m 10m 1h"), HoldMessages: 512}
	harness.Bubble(t, cfg, func(t *testing.T, c *harness.Client) {
		c.Target("ORDERS", "orders.>")
		c.PublishMany("delay.1m.orders.level", 1000) // with 256 messages in memory, the level reads no further
		time.Sleep(time.Second)
		const count = 2000
		for i := range count {
			c.Publish("delayin.20s.orders.x", fmt.Sprint(i))
		}
		time.Sleep(5 * time.Minute)
		far := slices.DeleteFunc(c.Arrivals("ORDERS"), func(a harness.Arrival) bool { return a.Subject != "orders.x" })
		harness.CheckOnTime(t, far, count)
	})
}

// TestPrefixChanged: after a change of the prefix, messages of the old prefix wait, and the log reports them once. They
// arrive after a change back to the old prefix.
func TestPrefixChanged(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		const words = "messages of another prefix wait, and no broker reads them"
		start := func(prefix string) (*harness.Instance, int) {
			log := harness.NewCountingLog()
			i := harness.StartBroker(t, s, broker.Config{Prefix: prefix, Log: slog.New(log)})
			return i, log.CountPrefix(words)
		}
		a, said := start("delay")
		c := harness.NewClient(t, s)
		in := c.Subscribe("orders.>")
		c.Publish("delay.1m.orders.x", "x")
		if b, of := start("beside"); said+of != 0 { // another broker reads the messages of this prefix
			t.Errorf("although another broker reads the messages, the log reports them %d times", said+of)
		} else {
			b.Stop()
		}
		a.Stop()
		b, said := start("later")
		if said != 1 {
			t.Errorf("after the change of the prefix, the log reports the messages %d times, want once", said)
		}
		time.Sleep(10 * time.Minute)
		harness.CheckCount(t, in.Arrivals(), 0)
		b.Stop()
		start("delay")
		time.Sleep(time.Minute)
		harness.CheckCount(t, in.Arrivals(), 1)
	})
}
