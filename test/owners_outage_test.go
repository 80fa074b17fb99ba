package test

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"delaybroker/broker"
	"delaybroker/test/natstest"
)

// An outage of DELAY_OWNERS stops no delivery. Package lease tests each kind of outage; the tests here look at the
// messages.

// TestFullAccountDrains: an account is full of messages for core subscribers. They are all delivered when they are due,
// by one instance or two, also when an instance crashes and starts again meanwhile.
func TestFullAccountDrains(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2} {
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d instances, restart %t", n, restart), func(t *testing.T) {
				natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
					cfg := broker.Config{Ladder: ladder(t, "1s 5s 1m 10m"), MaxOwners: 3, Log: quiet}
					var all []*instance
					for range n {
						all = append(all, startBroker(t, s, cfg))
					}
					time.Sleep(12 * time.Second)
					c := newClient(t, s)
					in := c.subscribe("ui.>")
					room := accountLimit(c, s, func(l *server.JetStreamAccountLimits) { l.MaxStore = 300 << 10 })
					room.fill()
					sent := 0
					for size := 1000; size > 0; size /= 2 {
						for c.tryPublish("delay.1m.ui.x", string(make([]byte, size))) == nil {
							sent++
						}
					}
					if restart {
						all[0].crash()
						launchBroker(t, s, cfg)
					}
					time.Sleep(2 * time.Minute)
					seen := make(map[string]bool)
					for _, a := range in.all() {
						seen[a.ID] = true
					}
					if len(seen) != sent || sent < 100 {
						t.Errorf("%d of %d messages were delivered a minute after they were due", len(seen), sent)
					}
					if !restart && len(in.all()) != sent {
						t.Errorf("%d were delivered %d times", sent, len(in.all()))
					}
					room.lift()
					time.Sleep(30 * time.Second)
				})
			})
		}
	}
}

// TestOwnersPurgedThenCrash: an instance crashes after DELAY_OWNERS was purged. The others take over its lanes as
// usual.
func TestOwnersPurgedThenCrash(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		a, b, d := startBroker(t, s, member(t, 3)), startBroker(t, s, member(t, 3)), startBroker(t, s, member(t, 3))
		time.Sleep(12 * time.Second)
		checkOwned(t, []int{3, 3, 4}, a, b, d)
		c := newClient(t, s)
		c.target("ORDERS", "orders.>")
		c.purge("DELAY_OWNERS")
		time.Sleep(10 * time.Second)
		d.crash()
		sent := 0
		for range 60 {
			for _, l := range []string{"1s", "5s", "10s", "30s", "1m"} {
				c.publish("delay."+l+".orders.x", fmt.Sprint(sent))
				sent++
			}
			time.Sleep(time.Second)
		}
		time.Sleep(2 * time.Minute)
		got := c.arrivals("ORDERS")
		var worst time.Duration
		for _, m := range got {
			worst = max(worst, m.At.Sub(m.Due))
		}
		if len(got) != sent || worst > 6*time.Second {
			t.Errorf("%d of %d came, the latest %s late, want all within 6s", len(got), sent, worst)
		}
		checkOwned(t, []int{5, 5}, a, b)
	})
}

// TestOwnersGone: DELAY_OWNERS is deleted and may not be created again. Everything is delivered on time and once, also
// by a broker that starts then.
func TestOwnersGone(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		startBroker(t, s, member(t, 3)).stop() // makes the streams
		verify := func() *instance {
			cfg := member(t, 3)
			cfg.Log = quiet
			return launchVerifying(t, s, cfg)
		}
		a, b := verify(), verify()
		time.Sleep(12 * time.Second)
		checkOwned(t, []int{5, 5}, a, b)
		c := newClient(t, s)
		in := c.subscribe("ui.>")
		c.remove("DELAY_OWNERS")
		for i := range 600 {
			c.publish("delay.1s.ui.x", fmt.Sprint(i))
			time.Sleep(time.Second)
		}
		time.Sleep(2 * time.Second)
		for _, m := range in.all() {
			if late := m.At.Sub(m.Due); late > 0 {
				t.Errorf("%s came %s late", m.Body, late)
			}
		}
		if got := len(in.all()); got != 600 {
			t.Errorf("%d deliveries of 600 messages", got)
		}
		a.crash()
		b.crash()
		verify()
		c.publish("delay.1s.ui.x", "to one that starts without")
		time.Sleep(30 * time.Second)
		if got := len(in.all()); got != 601 {
			t.Errorf("%d deliveries of 601 messages", got)
		}
	})
}
