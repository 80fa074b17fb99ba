package owners

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"delaybroker/broker"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// An outage of DELAY_OWNERS stops no delivery. The tests of package lease have each kind of outage. These tests check
// the messages.

// TestFullAccountDrains: an account is full of messages for core subscribers. One instance, or two, delivers all
// messages within a minute of their due times, even if an instance crashes and starts again before.
func TestFullAccountDrains(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2} {
		for _, restart := range []bool{false, true} {
			name := fmt.Sprintf("%d instances, restart %t", n, restart)
			natstest.Subtest(t, name, func(t *testing.T, s *natstest.Server) {
				cfg := broker.Config{Ladder: harness.Ladder(t, "1s 5s 1m 10m"), Leaser: harness.Together, Log: harness.NoLog}
				all := harness.StartBrokers(t, s, n, cfg)
				time.Sleep(12 * time.Second)
				c := harness.NewClient(t, s)
				in := c.Subscribe("ui.>")
				room := harness.AccountLimit(c, s, func(l *server.JetStreamAccountLimits) { l.MaxStore = 300 << 10 })
				room.Reach()
				sent := 0
				for size := 1000; size > 0; size /= 2 {
					for c.TryPublish("delay.1m.ui.x", string(make([]byte, size))) == nil {
						sent++
					}
				}
				if restart {
					all[0].Crash()
					harness.LaunchBroker(t, s, cfg)
				}
				time.Sleep(2 * time.Minute)
				seen := make(map[string]bool)
				for _, a := range in.Arrivals() {
					seen[a.ID] = true
				}
				if len(seen) != sent || sent < 100 {
					t.Errorf("%d of %d messages were delivered a minute after they were due", len(seen), sent)
				}
				if !restart && len(in.Arrivals()) != sent {
					t.Errorf("%d were delivered %d times", sent, len(in.Arrivals()))
				}
				room.Lift()
				time.Sleep(30 * time.Second)
			})
		}
	}
}

// TestOwnersPurgedThenCrash: the active instance crashes after DELAY_OWNERS was purged. Another one takes over as
// usual.
func TestOwnersPurgedThenCrash(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		f := startFleet(t, s)
		f.Purge("DELAY_OWNERS")
		time.Sleep(10 * time.Second)
		f.instances[0].Crash()
		f.send(300)
		time.Sleep(time.Minute)
		checkPrompt(t, f.Arrivals("ORDERS"), f.sent, 1100*time.Millisecond)
	})
}

// TestOwnersGone: DELAY_OWNERS is deleted and may not be created again. Each message is delivered on time and once,
// also by a broker that starts afterwards.
func TestOwnersGone(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, harness.MemberConfig(t)).Stop() // this broker creates the streams
		verify := func() *harness.Instance {
			cfg := harness.MemberConfig(t)
			cfg.Log = harness.NoLog
			return harness.LaunchVerifying(t, s, cfg)
		}
		a := verify()
		time.Sleep(6 * time.Second) // otherwise either of them may be first
		b := verify()
		time.Sleep(6 * time.Second)
		harness.CheckActive(t, 0, a, b)
		c := harness.NewClient(t, s)
		in := c.Subscribe("ui.>")
		c.Remove("DELAY_OWNERS")
		for i := range 600 {
			c.Publish("delay.1s.ui.x", fmt.Sprint(i))
			time.Sleep(time.Second)
		}
		time.Sleep(2 * time.Second)
		harness.CheckOnTime(t, in.Arrivals(), 600)
		a.Crash()
		b.Crash()
		verify()
		c.Publish("delay.1s.ui.x", "to one that starts without")
		time.Sleep(30 * time.Second)
		harness.CheckCount(t, in.Arrivals(), 601)
	})
}
