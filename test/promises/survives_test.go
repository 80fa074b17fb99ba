package promises

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestSurvives stops or crashes the broker while a message waits. The message arrives at its due time, or immediately
// after a later start of the broker.
func TestSurvives(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	clean := func(i *harness.Instance) { i.Stop() }
	crash := func(i *harness.Instance) { i.Crash() }
	for _, tt := range []struct {
		name    string
		subject string
		wait    time.Duration // the delay in the subject
		end     func(*harness.Instance)
		at      time.Duration // time from the publish to the end
		down    time.Duration // time from the end to the restart
	}{
		{"stopped in mid-delay", "delay.30m", 30 * time.Minute, clean, 10 * time.Minute, time.Minute},
		{"crashed in mid-delay", "delay.30m", 30 * time.Minute, crash, 10 * time.Minute, time.Minute},
		{"stopped on the wheel", "delay.5s", 5 * time.Second, clean, 4800 * time.Millisecond, 100 * time.Millisecond},
		{"crashed on the wheel", "delayin.2500ms", 2500 * time.Millisecond, crash, 2400 * time.Millisecond,
			50 * time.Millisecond},
		{"stopped in mid-chain", "delay.5h", 5 * time.Hour, clean, 4*time.Hour + 20*time.Millisecond, time.Second},
		{"crashed in mid-chain", "delay.5h", 5 * time.Hour, crash, 4*time.Hour + 20*time.Millisecond, time.Second},
		{"crashed for ten minutes", "delay.1m", time.Minute, crash, 30 * time.Second, 10 * time.Minute},
		{"stopped for ten minutes", "delay.15m", 15 * time.Minute, clean, 10 * time.Minute, 10 * time.Minute},
	} {
		natstest.Subtest(t, tt.name, func(t *testing.T, s *natstest.Server) {
			first, c := harness.Start(t, s, broker.Config{})
			c.Target("ORDERS", "orders.>")
			c.Publish(tt.subject+".orders.expire", "x", "Traceparent", "00-1-2-01")
			due := time.Now().Add(tt.wait)
			time.Sleep(tt.at)
			tt.end(first)
			time.Sleep(tt.down)
			back := time.Now()
			harness.StartBroker(t, s, broker.Config{})
			time.Sleep(max(0, time.Until(due)) + 30*time.Minute)
			got := c.Arrivals("ORDERS")
			want := due
			if back.After(due) {
				want = back
			}
			harness.CheckCount(t, got, 1)
			if !got[0].At.Equal(want) || !got[0].Due.Equal(due) || got[0].Header.Get("Traceparent") == "" {
				t.Errorf("arrived at %s, due %s with %v; want it at %s, due %s, with its headers", got[0].At,
					got[0].Due, got[0].Header, want, due)
			}
			c.CheckEmpty()
		})
	}
}

// TestSurvivesServerRestart restarts the server under a running broker.
func TestSurvivesServerRestart(t *testing.T) { // not in parallel: see natstest.DropTimers
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		c := harness.StartBroker(t, s, broker.Config{}).NewClient()
		c.Target("ORDERS", "orders.>")
		start := time.Now()
		c.Publish("delay.1m.orders.a", "a")
		c.Publish("delay.10s.orders.b", "b")
		c.Publish("delayin.2s.orders.c", "c")
		time.Sleep(time.Second)
		s.Restart(20 * time.Second)
		c.CheckArrivals("ORDERS", start.Add(22*time.Second), "b", "c") // when the broker has noticed the restart
		c.CheckArrivals("ORDERS", start.Add(time.Minute), "a", "b", "c")
		for _, a := range c.Arrivals("ORDERS") {
			if a.Body == "a" && !a.At.Equal(start.Add(time.Minute)) {
				t.Errorf("a arrived at %s, want %s", a.At, start.Add(time.Minute))
			}
		}
		c.CheckNoDead()
	})
}

// TestLadderChange removes a level from the configuration while it holds messages, and adds it again.
func TestLadderChange(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		with := broker.Config{Ladder: harness.Ladder(t, "1s 10s 7m 1h")}
		without := broker.Config{Ladder: harness.Ladder(t, "1s 10s 1h")}
		first, c := harness.Start(t, s, with)
		c.Target("ORDERS", "orders.>")
		start := time.Now()
		if got := c.Publish("delay.7m.orders.a", "a").Stream; got != "DELAY_7m" {
			t.Errorf("stored in %s, want DELAY_7m", got)
		}
		time.Sleep(time.Minute)
		first.Stop()

		second := harness.StartBroker(t, s, without)
		if got := c.Publish("delay.7m.orders.b", "b").Stream; got != "DELAY_INTAKE" {
			t.Errorf("without the level, stored in %s, want DELAY_INTAKE", got)
		}
		c.CheckArrivals("ORDERS", start.Add(7*time.Minute-1))
		c.CheckArrivals("ORDERS", start.Add(7*time.Minute), "a")
		c.CheckArrivals("ORDERS", start.Add(8*time.Minute), "a", "b")
		second.Stop()

		harness.StartBroker(t, s, with)
		if got := c.Publish("delay.7m.orders.c", "c").Stream; got != "DELAY_7m" {
			t.Errorf("with the level again, stored in %s, want DELAY_7m", got)
		}
		c.CheckArrivals("ORDERS", start.Add(15*time.Minute), "a", "b", "c")
		c.CheckEmpty()
	})
}

// TestNoHeadOfLineBlocking publishes 20,000 messages with a long delay before a message with a short delay. The broker
// may hold 1,000 messages in memory.
func TestNoHeadOfLineBlocking(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	const count = 20_000
	harness.Bubble(t, broker.Config{HoldMessages: 1000}, func(t *testing.T, c *harness.Client) {
		c.Target("ORDERS", "orders.>")
		var last jetstream.PubAckFuture
		for i := range count {
			var err error
			if last, err = c.JS.PublishAsync("delayin.900ms.orders.far", fmt.Append(nil, i)); err != nil {
				t.Fatal(err)
			}
		}
		<-last.Ok()
		start := time.Now()
		c.Publish("delayin.50ms.orders.near", "near")
		time.Sleep(50 * time.Millisecond)
		synctest.Wait()
		got := c.Arrivals("ORDERS")
		if len(got) != 1 || got[0].Body != "near" || !got[0].At.Equal(start.Add(50*time.Millisecond)) {
			t.Fatalf("after 50ms there are %d messages, want only the one with the short delay, at its due time", len(got))
		}
		time.Sleep(10 * time.Second)
		info := c.Stream("ORDERS")
		if got := info.CachedInfo().State.Msgs; got != count+1 {
			t.Errorf("%d arrived, want %d", got, count+1)
		}
		c.CheckEmpty()
	})
}

// TestOldestDueFirst: many messages in the intake, stored in a random order, became due while no broker ran. When a
// broker starts, it delivers all of them immediately, oldest due first.
func TestOldestDueFirst(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	harness.BubbleWithBroker(t, broker.Config{}, func(t *testing.T, c *harness.Client, first *harness.Instance) {
		c.Target("ORDERS", "orders.>")
		first.Stop()
		const count = 1500
		rng := rand.New(rand.NewPCG(7, 7))
		for i := range count {
			c.Publish(fmt.Sprintf("delayin.%dms.orders.x", 1+rng.IntN(600_000)), fmt.Sprint(i))
		}
		time.Sleep(time.Hour)
		back := time.Now()
		first.Replace()
		time.Sleep(time.Minute)
		got := c.Arrivals("ORDERS")
		harness.CheckCount(t, got, count)
		for i, a := range got {
			if !a.At.Equal(back) {
				t.Fatalf("%s arrived at %s, want all at %s", a.Body, a.At, back)
			}
			if i > 0 && a.Due.Before(got[i-1].Due) {
				t.Fatalf("number %d was due %s, the previous number %s", i, a.Due, got[i-1].Due)
			}
		}
		c.CheckEmpty()
	})
}

// TestJetStreamAway disables JetStream for ten minutes while the broker's connections stay up, as on a server with a
// failed disk. The log has few lines, and the broker continues when JetStream is back.
func TestJetStreamAway(t *testing.T) { // not in parallel: see natstest.DropTimers
	dir := natstest.Dir(t)
	natstest.BubbleWith(t, server.Options{StoreDir: dir}, func(t *testing.T, s *natstest.Server) {
		log := harness.NewCountingLog()
		owners := &harness.ProbeCounter{}
		harness.StartBroker(t, s,
			broker.Config{Ladder: harness.Ladder(t, "1s 10s 1m 10m"), Leaser: owners, Log: slog.New(log)})
		c := harness.NewClient(t, s)
		c.Target("ORDERS", "orders.>")
		start := time.Now()
		c.Publish("delay.10s.orders.a", "a")
		c.Publish("delay.1m.orders.b", "b")
		c.Publish("delayin.5m.orders.c", "c")
		c.Publish("delay.10m.orders.d", "d")
		c.Publish("delayin.15m.orders.e", "e")
		time.Sleep(9 * time.Second) // the message a is on the wheel
		natstest.NoError(t, s.Server().DisableJetStream())
		time.Sleep(10 * time.Minute)
		if got := log.CountPrefix(""); got > 150 {
			t.Errorf("%d lines in ten minutes, want few: %v", got, log.Count)
		}
		if log.CountPrefix("the stream's leader does not report its time") == 0 {
			t.Error("the log does not say that the stream's leader is missing")
		}
		natstest.NoError(t, s.Server().EnableJetStream(&server.JetStreamConfig{StoreDir: dir + "/jetstream"}))
		c.CheckArrivals("ORDERS", time.Now().Add(15*time.Second), "a", "b", "c", "d")
		if owners.Probes.Load() == 0 {
			t.Error("the broker did not check during the outage whether other instances own its lanes")
		}
		c.CheckArrivals("ORDERS", start.Add(15*time.Minute-1), "a", "b", "c", "d")
		c.CheckArrivals("ORDERS", start.Add(15*time.Minute), "a", "b", "c", "d", "e")
		time.Sleep(time.Minute)
		c.CheckEmpty()
	})
}

// TestStartWithoutALeader starts a broker while the list of streams has only the name of one stream, as for a stream
// without a leader. The broker waits at most 15 s for the complete entry. Then it does not consider the stream missing,
// and serves all streams.
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
					go func() { _ = m.Respond(harness.LeaderlessList(t, api, m.Data, "DELAY_10s")) }()
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
				got := in.Arrivals()
				harness.CheckCount(t, got, 2)
				if !got[1].At.Equal(due) {
					t.Errorf("the second message arrived %s after it was due", got[1].At.Sub(due))
				}
			})
		})
	}
}

func TestMain(m *testing.M) { harness.Main(m) }
