package owners

import (
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/broker/fault"
	"delaybroker/broker/web"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestFrozenLink: one connection of the active instance freezes, although it counts as up: it receives nothing, or also
// sends nothing. A stand-by takes over, and no message is later than 8 s. When the connection is back, the stand-by
// continues.
func TestFrozenLink(t *testing.T) { // not in parallel: see natstest.DropTimers
	natstest.SkipShort(t)
	for _, link := range []string{"read", "write", "deliver", "control"} {
		for _, length := range []time.Duration{20 * time.Second, 40 * time.Second, time.Minute} {
			natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
				t.Log(link, length)
				staller := s.Staller()
				staller.BothWays = length == 40*time.Second
				a := harness.StartBroker(t, s, harness.MemberConfig(t), func(o *nats.Options) error {
					if o.Name == link {
						o.CustomDialer = staller
					}
					return nil
				})
				f := newFleet(t, s, a, harness.StartBroker(t, s, harness.MemberConfig(t)))
				f.send(20)
				go staller.Stall(length)
				f.send(int(length / (200 * time.Millisecond)))
				harness.CheckActive(t, 1, f.instances...)
				f.send(100)
				time.Sleep(time.Minute)
				checkPrompt(t, f.Arrivals("ORDERS"), f.sent, 8*time.Second)
				harness.CheckActive(t, 1, f.instances...)
			})
		}
	}
}

// TestUselessLink: the user of a connection of the active instance loses the rights to JetStream. The server still
// answers pings. A stand-by takes over, and no message is later than 8 s.
func TestUselessLink(t *testing.T) { // not in parallel: see natstest.DropTimers
	natstest.SkipShort(t)
	for _, link := range []string{"read", "control"} {
		natstest.BubbleAs(t, server.Permissions{}, func(t *testing.T, s *natstest.Server) {
			t.Log(link)
			a := harness.StartBroker(t, s, harness.MemberConfig(t), func(o *nats.Options) error {
				if o.Name == link {
					o.User, o.Password = natstest.LimitedUser, natstest.LimitedUser
				}
				return nil
			})
			f := newFleet(t, s, a, harness.StartBroker(t, s, harness.MemberConfig(t)))
			f.send(20)
			deny := func(subjects ...string) {
				s.Reload(func(o *server.Options) { natstest.SetUsers(o, natstest.DenyPublish(subjects...)) })
			}
			deny("$JS.API.>", "delaysys.owners.>")
			f.send(35) // 7 s
			harness.CheckActive(t, 1, f.instances...)
			f.send(165)
			deny()
			f.send(50)
			time.Sleep(time.Minute)
			checkPrompt(t, f.Arrivals("ORDERS"), f.sent, 8*time.Second)
			harness.CheckActive(t, 1, f.instances...)
		})
	}
}

// TestShortFreeze: all connections of the active instance freeze for 2 s, as in a pause of its machine. It stays
// active.
func TestShortFreeze(t *testing.T) { // not in parallel: see natstest.DropTimers
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		staller := s.Staller()
		a := harness.StartBroker(t, s, harness.MemberConfig(t), nats.SetCustomDialer(staller))
		b := harness.StartBroker(t, s, harness.MemberConfig(t))
		time.Sleep(10 * time.Second)
		for range 5 {
			go staller.Stall(2 * time.Second)
			for range 100 {
				harness.CheckActive(t, 0, a, b)
			}
			time.Sleep(777 * time.Millisecond)
		}
	})
}

// TestStuckLoop: the loop of a lane is stuck in the program's callback. A stand-by takes over, and delivers. An
// instance without a stand-by keeps its other lanes, is not ready, and says so in its log and its status.
func TestStuckLoop(t *testing.T) {
	t.Parallel()
	for _, alone := range []bool{true, false} {
		natstest.Subtest(t, fmt.Sprint("alone ", alone), func(t *testing.T, s *natstest.Server) {
			log := harness.NewCountingLog()
			cfg, release := harness.MemberConfig(t), make(chan struct{})
			cfg.Log = slog.New(log)
			cfg.Ended = func(e broker.Ended) {
				if e.Target == "orders.stuck" {
					<-release
				}
			}
			a := harness.StartBroker(t, s, cfg)
			all := []*harness.Instance{a}
			if !alone {
				all = append(all, harness.StartBroker(t, s, harness.MemberConfig(t)))
			}
			c := harness.NewClient(t, s)
			in := c.Subscribe("orders.>")
			time.Sleep(10 * time.Second)
			c.Publish("delay.1s.orders.stuck", "stuck")
			time.Sleep(2 * time.Second)
			c.Publish("delay.1s.orders.same", "same lane")
			c.Publish("delay.5s.orders.other", "other lane")
			time.Sleep(10 * time.Second)
			const problem = "no working loop: DELAY_1s" // also of an instance that has lost its lease
			want := "other lane stuck"
			if !alone {
				want = "other lane same lane stuck×2"
			}
			harness.CheckBodies(t, in.Arrivals(), want)
			checks := web.Source{
				Engine: a.Broker, LinkFaults: func() map[string]fault.Fault { return nil }, Stopping: make(chan struct{}),
				Durability: new(atomic.Pointer[string]),
			}.Checks()
			for _, check := range checks {
				if check.Name == "lanes" && check.Detail != problem {
					t.Errorf("/readyz says %q, want %q", check.Detail, problem)
				}
			}
			if got := log.CountPrefix("a lane has no working loop"); alone && got != 1 {
				t.Errorf("logged %d times, want once", got)
			}
			close(release)
			time.Sleep(2 * time.Second)
			harness.CheckActive(t, len(all)-1, all...)
			if alone && !strings.Contains(fmt.Sprint(in.Arrivals()), "same lane") {
				t.Error("the lane is not worked after its loop has returned")
			}
		})
	}
}

// TestOldestDueFirstAtTakeOver: all connections of the active instance freeze. The stand-by sends the overdue messages
// of all lanes to one target in one order: none before another one that was due more than a tenth of a second earlier.
func TestOldestDueFirstAtTakeOver(t *testing.T) { // not in parallel: see natstest.DropTimers
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		staller := s.Staller()
		staller.BothWays = true
		harness.StartBroker(t, s, harness.MemberConfig(t), nats.SetCustomDialer(staller))
		b := harness.StartBroker(t, s, harness.MemberConfig(t))
		f := &fleet{Client: harness.NewClient(t, s), instances: []*harness.Instance{b}}
		f.Target("ORDERS", "orders.>")
		time.Sleep(10 * time.Second)
		go staller.Stall(time.Minute)
		for range 1000 {
			f.Publish(mixedRoots[f.sent%len(mixedRoots)]+".orders.x", fmt.Sprint(f.sent))
			f.sent++
			time.Sleep(10*time.Millisecond + time.Duration(f.sent%7)*time.Millisecond)
		}
		harness.CheckActive(t, 0, b)
		time.Sleep(2 * time.Minute)
		got := f.Arrivals("ORDERS")
		checkPrompt(t, got, f.sent, 6*time.Second)
		var latest time.Time
		overdue := 0
		for _, m := range got {
			if m.At.Sub(m.Due) < time.Second {
				continue
			}
			overdue++
			if latest.Sub(m.Due) > 100*time.Millisecond {
				t.Fatalf("a message that was due at %s arrived after one that was due at %s", m.Due, latest)
			}
			if m.Due.After(latest) {
				latest = m.Due
			}
		}
		if overdue < 50 {
			t.Errorf("%d messages were overdue, want at least 50", overdue)
		}
	})
}
