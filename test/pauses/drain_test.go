package pauses

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/broker/deliver"
	"delaybroker/broker/message"
	"delaybroker/broker/pause"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestResumedThroughOutage: the server is away for eleven seconds while five resumed pauses drain. The turn of the
// first one ends meanwhile, and its last commit fails. Afterwards all of them drain to the end, and their targets get
// later messages, also after another instance has started and stopped.
func TestResumedThroughOutage(t *testing.T) { // not in parallel: see natstest.DropTimers
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		log := harness.NewCountingLog()
		cfg := broker.Config{Log: slog.New(log), Leaser: harness.Together, Deliver: deliver.Modes{
			Rules: message.Rules[message.Mode]{{Pattern: "dark.>", Value: message.ModeStream}},
		}}
		harness.StartBroker(t, s, cfg)
		c, o := harness.NewClient(t, s), harness.Operator(t, s)
		c.Target("OK", "ok.>")
		c.Subscribe("dark.>") // no stream acknowledges
		const pauses = 5
		for n := range pauses {
			harness.MustPause(t, o, fmt.Sprint("*.", n))
			c.Publish(fmt.Sprint("delay.1s.dark.", n), "dark")
			time.Sleep(100 * time.Millisecond)
			c.Publish(fmt.Sprint("delay.1s.ok.", n), "ok")
		}
		time.Sleep(time.Minute)
		for n := range pauses {
			harness.MustResume(t, o, fmt.Sprint("*.", n))
		}
		time.Sleep(500 * time.Millisecond) // before the delivered messages are removed
		s.Restart(11 * time.Second)
		time.Sleep(time.Minute)
		if log.CountPrefix("the drain of a resumed pause has ended with an error") == 0 {
			t.Error("no drain ended with an error")
		}
		harness.CheckCount(t, c.Arrivals("OK"), pauses)
		other := harness.StartBroker(t, s, cfg)
		time.Sleep(time.Minute)
		other.Stop()
		for n := range pauses {
			c.Publish(fmt.Sprint("delay.1s.ok.", n), "later")
		}
		time.Sleep(time.Minute)
		harness.CheckCount(t, c.Arrivals("OK"), 2*pauses)
	})
}

// TestSilentPausesMoveNothing: JetStream does not answer reads of the stream of paused messages, and everything else
// works. The loops of the active instance respond all the time, and other targets get their messages on time.
func TestSilentPausesMoveNothing(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		var silent atomic.Bool
		prefix := natstest.Proxy(t, s, func(question string, m *nats.Msg) bool {
			return silent.Load() && strings.Contains(question, "STREAM.MSG.GET.DELAY_PAUSED")
		})
		cfg := broker.Config{Leaser: harness.Together, Log: harness.NoLog, APIPrefix: prefix}
		active := harness.StartBroker(t, s, cfg)
		time.Sleep(10 * time.Second)
		standBy := harness.StartBroker(t, s, cfg)
		c, o := harness.NewClient(t, s), harness.Operator(t, s)
		c.Target("ORDERS", "orders.>")
		in := c.Subscribe("mail.>")
		harness.MustPause(t, o, "orders.>")
		harness.MustResume(t, o, "orders.>")
		silent.Store(true)
		for n := range 120 {
			time.Sleep(time.Second)
			if n%5 == 4 {
				c.Publish("delay.1s.mail.x", "")
			}
			for _, l := range active.Broker.Status().Lanes {
				if l.Unworked > 0 {
					t.Fatalf("the loop of %s has not responded for %s", l.Stream, l.Unworked)
				}
			}
			for _, l := range standBy.Broker.Status().Lanes {
				if l.Owned {
					t.Fatalf("the other instance works %s", l.Stream)
				}
			}
			if err := active.Broker.Alive(t.Context()); err != nil {
				t.Fatalf("the active instance: %v", err)
			}
		}
		harness.CheckExactly(t, in, time.Now().Add(time.Second), 23)
	})
}

// TestResumedBesideManySilent: the lanes of nine resumed pauses have messages for silent targets at their heads. The
// messages behind them, and those of a tenth pause, are delivered once, within half a minute.
func TestResumedBesideManySilent(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, broker.Config{Log: harness.NoLog})
		c, o := harness.NewClient(t, s), harness.Operator(t, s)
		c.SilentTarget("silent.>")
		in := c.Subscribe("orders.>")
		const pauses, waiting = 10, 100
		for n := range pauses {
			harness.MustPause(t, o, fmt.Sprintf("*.%d", n))
			if n < pauses-1 {
				c.Publish(fmt.Sprintf("delay.1s.silent.%d", n), "silent", message.HeaderDeliver, "stream")
			}
		}
		time.Sleep(time.Second)
		for n := range pauses {
			c.PublishMany(fmt.Sprintf("delay.1s.orders.%d", n), waiting)
		}
		time.Sleep(time.Minute)
		for n := range pauses {
			harness.MustResume(t, o, fmt.Sprintf("*.%d", n))
		}
		time.Sleep(30 * time.Second)
		harness.CheckCount(t, in.Arrivals(), pauses*waiting)
	})
}

// TestLatenessAfterResumption: after a pause, the lateness counts from the time at which the stream stored the
// resumption. The clock of the operator's host does not matter.
func TestLatenessAfterResumption(t *testing.T) {
	t.Parallel()
	for _, skew := range []time.Duration{0, -time.Hour, time.Hour} {
		natstest.Subtest(t, skew.String(), func(t *testing.T, s *natstest.Server) {
			var mu sync.Mutex // guards latest
			var latest time.Duration
			harness.StartBroker(t, s, broker.Config{Ended: func(e broker.Ended) {
				mu.Lock()
				defer mu.Unlock()
				latest = max(latest, e.Lateness)
			}})
			c, o := harness.NewClient(t, s), harness.Operator(t, s)
			c.Target("ORDERS", "orders.>")
			harness.MustPause(t, o, "orders.>")
			c.Publish("delay.1s.orders.x", "1")
			time.Sleep(time.Minute)
			store := pause.Store{Conn: c.NC, API: "$JS.API", Names: c.Policy("delay").Names, Keys: c.Policy("delay").Keys}
			read, err := store.Read(context.Background())
			natstest.NoError(t, err)
			next, err := read.List.Resume("orders.>", time.Now().Add(skew))
			natstest.NoError(t, err)
			resumed := time.Now()
			_, err = store.Write(context.Background(), next, read)
			natstest.NoError(t, err)
			time.Sleep(time.Minute)
			arrivals := c.Arrivals("ORDERS")
			harness.CheckBodies(t, arrivals, "1")
			mu.Lock()
			defer mu.Unlock()
			if want := arrivals[0].At.Sub(resumed); latest != want {
				t.Errorf("the lateness is %s, want %s, the time since the resumption", latest, want)
			}
		})
	}
}
