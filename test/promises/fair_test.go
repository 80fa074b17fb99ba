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

// holds is the maximum number of messages that a lane holds in memory here. It is the smallest window of package
// deliver, so each group has the same share as with the defaults.
const holds = 2 << 10

// trouble is a flood for a target in trouble: more messages than a lane holds, due within a second.
type trouble func(c *harness.Client)

// floodWith publishes messages for silent targets of mode stream.
func floodWith(c *harness.Client, count, size int, subject func(i int) string) {
	c.T.Helper()
	body := make([]byte, size)
	for i := range count {
		m := &nats.Msg{Subject: subject(i), Data: body, Header: nats.Header{message.HeaderDeliver: {"stream"}}}
		if err := c.NC.PublishMsg(m); err != nil {
			c.T.Fatal(err)
		}
	}
}

func always(subject string) func(int) string { return func(int) string { return subject } }

func numbered(format string) func(int) string {
	return func(i int) string { return fmt.Sprintf(format, i) }
}

var troubles = map[string]trouble{
	"silent, 32 KB": func(c *harness.Client) {
		c.Silent("heavy.x")
		floodWith(c, 400, 32<<10, always("delay.1s.heavy.x"))
	},
	"silent, 900 KB": func(c *harness.Client) {
		c.Silent("huge.x")
		floodWith(c, 20, 900_000, always("delay.1s.huge.x"))
	},
	"silent, many subjects of one prefix": func(c *harness.Client) {
		c.Silent("silent.>")
		floodWith(c, 5*holds/2, 1, numbered("delay.1s.silent.%d"))
	},
	"silent, many subjects of one stream": func(c *harness.Client) {
		c.Create(jetstream.StreamConfig{
			Name: "MUTE", Subjects: []string{"fleet.*.mute"}, NoAck: true,
			Storage: jetstream.MemoryStorage, MaxMsgs: 10,
		})
		floodWith(c, 5*holds/2, 1, numbered("delay.1s.fleet.%d.mute"))
	},
	"a service that takes 1,000 a second": func(c *harness.Client) {
		c.SlowService("svc.x", 1000)
		c.Many("delay.1s.svc.x", 5*holds/2, message.HeaderDeliver, "request")
	},
}

// TestFloodSlowsNobody floods a lane. In the same lane there are ten messages a second for a healthy target, before,
// during and after the flood. They arrive exactly when they are due, except when a flood begins and fills the lane's
// memory. Then the lane stops for at most a second if the target answers, or for at most a quarter of a second if it
// does not, and needs as long again to catch up. All floods together also fill the memory that the lanes share. They
// fill it again when the returned messages come again.
func TestFloodSlowsNobody(t *testing.T) {
	natstest.Long(t)
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
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
				test.slowsNobody(t, s)
			})
		})
	}
}

// A flood is several troubles at the same time.
type flood struct {
	these   []trouble
	maxStop time.Duration // the longest time for which the lane may stop
	maxSum  time.Duration // of all times for which it stops
}

// slowsNobody wants a healthy target to get its messages on time during the flood.
func (f flood) slowsNobody(t *testing.T, s *natstest.Server) {
	t.Helper()
	const count, every = 1000, 100 * time.Millisecond // until messages come again at the longest retry delay, twice
	harness.StartBroker(t, s, broker.Config{HoldMessages: holds, HoldBytes: 32 << 20})
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
	for _, trouble := range f.these {
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
	if len(arrivals) != count {
		t.Fatalf("%d of %d for the healthy target came", len(arrivals), count)
	}
	if latest > f.maxStop || sum > f.maxSum {
		t.Errorf("the healthy target's latest is %s, want %s at most; its messages were late for %s, want %s at most",
			latest, f.maxStop, sum, f.maxSum)
	}
	c.CheckNoDead()
}

// TestSlowTargetIsBusy: messages that were taken back from a slow target are sent again when the target has room. So
// the target is always busy, and gets each message once.
func TestSlowTargetIsBusy(t *testing.T) {
	natstest.Long(t)
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		const count, rate = 10_000, 1000
		harness.StartBroker(t, s, broker.Config{HoldMessages: 4 << 10})
		c := harness.NewClient(t, s)
		in := c.Subscribe("svc.x")
		c.SlowService("svc.x", rate)
		due := time.Now().Add(time.Second)
		for range count / 1000 {
			c.Many("delay.1s.svc.x", 1000, message.HeaderDeliver, "request")
		}
		time.Sleep(time.Minute)
		var last time.Duration
		ids := make(map[string]bool)
		for _, a := range in.All() {
			ids[a.ID] = true
			last = max(last, a.At.Sub(due))
		}
		if got := len(in.All()); got != count || len(ids) != count {
			t.Errorf("%d requests for %d of %d messages", got, len(ids), count)
		}
		if most := 3 * count / rate * time.Second / 2; last > most {
			t.Errorf("the last was sent %s after it was due, want %s at most: "+
				"half as long again as it takes at the service's rate", last, most)
		}
		c.CheckEmpty()
	})
}
