package pauses

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/test/harness"
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
func numberToEach(c *harness.Client, n int, targets ...string) {
	c.T.Helper()
	for _, target := range targets {
		if err := c.NC.Publish("delay.1s."+target, fmt.Appendf(nil, "%06d", n)); err != nil {
			c.T.Fatal(err)
		}
	}
	time.Sleep(time.Millisecond)
}

// TestOverlappingPausesKeepTheOrder: two pauses that match the same target are resumed while a third drains, and the
// lane of the first is too long for one turn. What has gone on from it into the lane of the second does not come back
// behind what was due later.
func TestOverlappingPausesKeepTheOrder(t *testing.T) {
	natstest.Long(t)
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := broker.Config{}
		slowAnswers(t, s, &cfg, "STREAM.MSG.GET."+harness.PausedStream, 40*time.Millisecond)
		harness.StartBroker(t, s, cfg)
		c, o := harness.NewClient(t, s), harness.Operator(t, s)
		c.Target("SHOP", "shop.>")
		c.Target("FIRST", "first.>")
		for _, pattern := range []string{"shop.>", "shop.mail", "other.>", "first.>"} {
			harness.MustPause(t, o, pattern)
		}
		const count = 600
		for n := range count { // each lies between two of another pause
			targets := []string{"shop.mail", "other.x", "first.x"}
			if n >= 100 {
				targets = targets[:2]
			}
			numberToEach(c, n, targets...)
		}
		time.Sleep(time.Minute)
		harness.MustResume(t, o, "first.>")
		harness.MustResume(t, o, "shop.>")
		harness.MustResume(t, o, "shop.mail")
		time.Sleep(5 * time.Minute)
		harness.CheckInOrder(t, c.Arrivals("SHOP"), count)
		c.CheckNoDead()
	})
}

// TestResumedIsNotHeldUpByALongLane: a target is resumed while the lane of another pause drains, which has much to
// drain. It gets what waited after the turn of that lane.
func TestResumedIsNotHeldUpByALongLane(t *testing.T) {
	natstest.Long(t)
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := broker.Config{}
		slowAnswers(t, s, &cfg, "STREAM.MSG.GET."+harness.PausedStream, 40*time.Millisecond)
		harness.StartBroker(t, s, cfg)
		c, o := harness.NewClient(t, s), harness.Operator(t, s)
		c.Target("SHOP", "shop.>")
		c.Target("MAIL", "mail.>")
		for _, pattern := range []string{"shop.>", "other.>", "mail.>"} {
			harness.MustPause(t, o, pattern)
		}
		const count = 600
		for n := range count {
			numberToEach(c, n, "shop.x", "other.x")
		}
		c.Publish("delay.1s.mail.x", "000000")
		time.Sleep(time.Minute)
		harness.MustResume(t, o, "shop.>")
		time.Sleep(2 * time.Second)
		harness.MustResume(t, o, "mail.>")
		time.Sleep(11 * time.Second)
		harness.CheckInOrder(t, c.Arrivals("MAIL"), 1)
		if n := len(c.Arrivals("SHOP")); n == 0 || n == count {
			t.Errorf("%d of %d arrived for the other target; the test wants its lane to drain still", n, count)
		}
		time.Sleep(5 * time.Minute)
		harness.CheckInOrder(t, c.Arrivals("SHOP"), count)
		c.CheckNoDead()
	})
}
