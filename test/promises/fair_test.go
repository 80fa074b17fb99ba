package promises

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker"
	"delaybroker/broker/message"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// holdMessages is HoldMessages in these tests. At twice this number in memory, a lane stops reading.
const holdMessages = 2 << 10

// A trouble publishes many or large messages for slow or silent targets. The messages are due within a second.
type trouble func(c *harness.Client)

// floodWith publishes messages for silent targets of mode stream.
func floodWith(c *harness.Client, count, size int, subject func(i int) string) {
	c.T.Helper()
	body := make([]byte, size)
	for i := range count {
		m := &nats.Msg{Subject: subject(i), Data: body, Header: nats.Header{message.HeaderDeliver: {"stream"}}}
		natstest.NoError(c.T, c.NC.PublishMsg(m))
	}
}

// oneSubject returns the same subject for all messages.
func oneSubject(subject string) func(int) string { return func(int) string { return subject } }

// numberedSubjects returns a subject with the number of the message.
func numberedSubjects(format string) func(int) string {
	return func(i int) string { return fmt.Sprintf(format, i) }
}

var troubles = map[string]trouble{
	"silent, 32 KB": func(c *harness.Client) {
		c.SilentTarget("heavy.x")
		floodWith(c, 400, 32<<10, oneSubject("delay.1s.heavy.x"))
	},
	"silent, 900 KB": func(c *harness.Client) {
		c.SilentTarget("huge.x")
		floodWith(c, 20, 900_000, oneSubject("delay.1s.huge.x"))
	},
	"silent, many subjects of one prefix": func(c *harness.Client) {
		c.SilentTarget("silent.>")
		floodWith(c, 5*holdMessages/2, 1, numberedSubjects("delay.1s.silent.%d"))
	},
	"silent, many subjects of one stream": func(c *harness.Client) {
		c.Create(jetstream.StreamConfig{
			Name: "MUTE", Subjects: []string{"fleet.*.mute"}, NoAck: true,
			Storage: jetstream.MemoryStorage, MaxMsgs: 10,
		})
		floodWith(c, 5*holdMessages/2, 1, numberedSubjects("delay.1s.fleet.%d.mute"))
	},
	"a service that takes 1,000 a second": func(c *harness.Client) {
		c.SlowService("svc.x", 1000)
		c.PublishMany("delay.1s.svc.x", 5*holdMessages/2, message.HeaderDeliver, "request")
	},
}

// TestFloodSlowsNobody floods a lane. In the same lane there are ten messages a second for a healthy target, before,
// during and after the flood. These arrive exactly at their due times, except when a flood begins and fills the lane's
// memory. Then the lane stops for at most a second, or for three seconds if all floods begin together. The lane needs
// as long again to catch up. All floods together also fill the memory that the lanes share, and fill it again with the
// retries.
func TestFloodSlowsNobody(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	names := slices.Sorted(maps.Keys(troubles))
	tests := make(map[string]flood)
	var all []trouble
	for _, name := range names {
		tests[name] = flood{[]trouble{troubles[name]}, time.Second, 2 * time.Second}
		all = append(all, troubles[name])
	}
	tests["all"] = flood{all, 3 * time.Second, 6 * time.Second}
	all = slices.Clone(all)
	slices.Reverse(all)
	tests["all, the slow one last"] = flood{all, 3 * time.Second, 6 * time.Second}
	for name, test := range tests {
		natstest.Subtest(t, name, func(t *testing.T, s *natstest.Server) {
			test.checkHealthy(t, s)
		})
	}
}

// A flood is several troubles at the same time.
type flood struct {
	troubles []trouble
	maxStop  time.Duration // the maximum duration of one stop of the lane
	maxSum   time.Duration // the maximum time in which messages are late: while the lane stops, and until it has caught up
}

// checkHealthy expects a healthy target to get its messages on time during the flood.
func (f flood) checkHealthy(t *testing.T, s *natstest.Server) {
	t.Helper()
	const count, every = 1000, 100 * time.Millisecond // 100 s, longer than the longest retry delay
	harness.StartBroker(t, s, broker.Config{HoldMessages: holdMessages, HoldBytes: 32 << 20})
	c, healthy := harness.NewClient(t, s), harness.NewClient(t, s)
	c.Target("ORDERS", "orders.>")
	var publishing sync.WaitGroup
	publishing.Go(func() {
		for i := range count {
			healthy.Publish("delay.1s.orders.x", fmt.Sprint(i))
			time.Sleep(every)
		}
	})
	time.Sleep(2 * time.Second)
	for _, trouble := range f.troubles {
		trouble(c)
	}
	publishing.Wait()
	time.Sleep(10 * time.Second)
	synctest.Wait()
	var latest, sum time.Duration
	arrivals := c.Arrivals("ORDERS")
	for _, a := range arrivals {
		if late := a.At.Sub(a.Due); late > 0 {
			latest = max(latest, late)
			sum += every
		}
	}
	harness.CheckCount(t, arrivals, count)
	if latest > f.maxStop || sum > f.maxSum {
		t.Errorf("the healthy target was late by %s at most, want %s; its messages were late during %s, want %s at most",
			latest, f.maxStop, sum, f.maxSum)
	}
	c.CheckNoDead()
}

// TestSlowTargetIsBusy: the broker returns messages of a slow target to a retry lane, and sends them when the target
// has room. So the target is busy for two thirds of the time or more, and gets each message once.
func TestSlowTargetIsBusy(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	const count, rate = 10_000, 1000
	harness.Bubble(t, broker.Config{HoldMessages: 4 << 10}, func(t *testing.T, c *harness.Client) {
		in := c.Subscribe("svc.x")
		c.SlowService("svc.x", rate)
		due := time.Now().Add(time.Second)
		for range count / 1000 {
			c.PublishMany("delay.1s.svc.x", 1000, message.HeaderDeliver, "request")
		}
		time.Sleep(time.Minute)
		var last time.Duration
		ids := make(map[string]bool)
		for _, a := range in.Arrivals() {
			ids[a.ID] = true
			last = max(last, a.At.Sub(due))
		}
		if got := len(in.Arrivals()); got != count || len(ids) != count {
			t.Errorf("%d requests for %d of %d messages", got, len(ids), count)
		}
		if maxLate := 3 * count / rate * time.Second / 2; last > maxLate {
			t.Errorf("the last request was sent %s after it was due, want at most %s: one and a half times the time that "+
				"the service needs", last, maxLate)
		}
		c.CheckEmpty()
	})
}
