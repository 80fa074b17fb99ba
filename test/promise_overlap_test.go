package test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/test/natstest"
)

// slowAnswers has JetStream take some time to answer the requests of brokers with this configuration that begin so.
func slowAnswers(t *testing.T, s *natstest.Server, cfg *broker.Config, begins string, by time.Duration) {
	t.Helper()
	late := s.Connect(nats.Name("late"))
	natstest.Proxy(t, s, func(question string, m *nats.Msg) bool {
		if !strings.HasPrefix(question, begins) {
			return false
		}
		time.AfterFunc(by, func() { natstest.PassOn(late, question, m) })
		return true
	})
	cfg.APIPrefix = natstest.ProxyAPI
}

// numberToEach publishes a number to each of some targets, and waits a millisecond.
func (c *client) numberToEach(n int, targets ...string) {
	c.t.Helper()
	for _, target := range targets {
		if err := c.nc.Publish("delay.1s."+target, fmt.Appendf(nil, "%06d", n)); err != nil {
			c.t.Fatal(err)
		}
	}
	time.Sleep(time.Millisecond)
}

// TestOverlappingPausesKeepTheOrder: two pauses that match the same target are resumed while a third drains, and the
// lane of the first is too long for one turn. What has gone on from it into the lane of the second does not come back
// behind what was due later.
func TestOverlappingPausesKeepTheOrder(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := broker.Config{}
		slowAnswers(t, s, &cfg, "STREAM.MSG.GET."+pausedStream, 40*time.Millisecond)
		startBroker(t, s, cfg)
		c, o := newClient(t, s), operator(t, s)
		c.target("SHOP", "shop.>")
		c.target("FIRST", "first.>")
		for _, pattern := range []string{"shop.>", "shop.mail", "other.>", "first.>"} {
			mustPause(t, o, pattern)
		}
		const count = 600
		for n := range count { // each lies between two of another pause
			targets := []string{"shop.mail", "other.x", "first.x"}
			if n >= 100 {
				targets = targets[:2]
			}
			c.numberToEach(n, targets...)
		}
		time.Sleep(time.Minute)
		mustResume(t, o, "first.>")
		mustResume(t, o, "shop.>")
		mustResume(t, o, "shop.mail")
		time.Sleep(5 * time.Minute)
		checkInOrder(t, c.arrivals("SHOP"), count)
		c.checkNoDead()
	})
}

// TestResumedIsNotHeldUpByALongLane: a target is resumed while the lane of another pause drains, which has much to
// drain. It gets what waited after the turn of that lane.
func TestResumedIsNotHeldUpByALongLane(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := broker.Config{}
		slowAnswers(t, s, &cfg, "STREAM.MSG.GET."+pausedStream, 40*time.Millisecond)
		startBroker(t, s, cfg)
		c, o := newClient(t, s), operator(t, s)
		c.target("SHOP", "shop.>")
		c.target("MAIL", "mail.>")
		for _, pattern := range []string{"shop.>", "other.>", "mail.>"} {
			mustPause(t, o, pattern)
		}
		const count = 600
		for n := range count {
			c.numberToEach(n, "shop.x", "other.x")
		}
		c.publish("delay.1s.mail.x", "000000")
		time.Sleep(time.Minute)
		mustResume(t, o, "shop.>")
		time.Sleep(2 * time.Second)
		mustResume(t, o, "mail.>")
		time.Sleep(11 * time.Second)
		checkInOrder(t, c.arrivals("MAIL"), 1)
		if n := len(c.arrivals("SHOP")); n == 0 || n == count {
			t.Errorf("%d of %d arrived for the other target; the test wants its lane to drain still", n, count)
		}
		time.Sleep(5 * time.Minute)
		checkInOrder(t, c.arrivals("SHOP"), count)
		c.checkNoDead()
	})
}
