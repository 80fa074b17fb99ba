package pauses

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/broker/inspect"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// slowAnswers changes a broker's configuration: JetStream answers late to its requests whose API subject begins with a
// text.
func slowAnswers(t *testing.T, s *natstest.Server, cfg *broker.Config, begins string, by time.Duration) {
	t.Helper()
	late := s.Connect(nats.Name("late"))
	cfg.APIPrefix = natstest.Proxy(t, s, func(question string, m *nats.Msg) bool {
		if !strings.HasPrefix(question, begins) {
			return false
		}
		time.AfterFunc(by, func() { natstest.Forward(late, question, m) })
		return true
	})
}

// pausedSlowly runs a broker with some patterns paused. The broker reads slowly from the stream of paused messages.
func pausedSlowly(t *testing.T, s *natstest.Server, patterns ...string) (*harness.Client, *inspect.Inspector) {
	t.Helper()
	var cfg broker.Config
	slowAnswers(t, s, &cfg, "STREAM.MSG.GET."+harness.PausedStream, 40*time.Millisecond)
	harness.StartBroker(t, s, cfg)
	o := harness.Operator(t, s)
	for _, pattern := range patterns {
		harness.MustPause(t, o, pattern)
	}
	return harness.NewClient(t, s), o
}

// TestOverlappingPausesKeepTheOrder: two pauses match the same target. An operator resumes both while the lane of a
// third pause drains, that is, while the broker delivers the lane's messages. Lanes drain in turns of ten seconds, too
// short for the older of the two pauses. Its messages may move into the lane of the younger pause, and the target still
// gets all messages in the order of due times.
func TestOverlappingPausesKeepTheOrder(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		c, o := pausedSlowly(t, s, "shop.>", "shop.mail", "other.>", "first.>")
		c.Target("SHOP", "shop.>")
		c.Target("FIRST", "first.>")
		const count = 600
		for n := range count { // each due time is between two due times of another pause
			publishNumber(c, n, "delay.1s.shop.mail", "delay.1s.other.x")
			if n < 100 {
				publishNumber(c, n, "delay.1s.first.x")
			}
			time.Sleep(time.Millisecond)
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

// TestResumedBesideLongLane: a target is resumed while the long lane of another pause drains. The target's message
// arrives after one turn of that lane, ten seconds.
func TestResumedBesideLongLane(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		c, o := pausedSlowly(t, s, "shop.>", "other.>", "mail.>")
		c.Target("SHOP", "shop.>")
		c.Target("MAIL", "mail.>")
		const count = 600
		for n := range count {
			publishNumber(c, n, "delay.1s.shop.x", "delay.1s.other.x")
			time.Sleep(time.Millisecond)
		}
		c.Publish("delay.1s.mail.x", "000000")
		time.Sleep(time.Minute)
		harness.MustResume(t, o, "shop.>")
		time.Sleep(2 * time.Second)
		harness.MustResume(t, o, "mail.>")
		time.Sleep(11 * time.Second)
		harness.CheckInOrder(t, c.Arrivals("MAIL"), 1)
		if n := len(c.Arrivals("SHOP")); n == 0 || n == count {
			t.Errorf("%d of %d messages of the long lane have arrived, want some and not all", n, count)
		}
		time.Sleep(5 * time.Minute)
		harness.CheckInOrder(t, c.Arrivals("SHOP"), count)
		c.CheckNoDead()
	})
}
