package timers

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/test/harness"
)

// TestReplicasAnswerAgain: while replicas do not answer, each due timer is read from the leader. A few seconds after
// replicas answer again, timers are read from replicas, many in one request. All timers come when they are due.
func TestReplicasAnswerAgain(t *testing.T) {
	t.Parallel()
	harness.Bubble(t, oneHop(t), func(t *testing.T, c *harness.Client) {
		const timers = 20
		in := c.Subscribe("orders.>")
		direct := func(allowed bool) {
			c.Reconfigure("DELAY_TIMERS", func(cfg *jetstream.StreamConfig) { cfg.AllowDirect = allowed })
		}
		c.Publish("delaytimer.first.orders.x", "body", "Delay-For", "1s")
		time.Sleep(5 * time.Minute)
		start := time.Now()
		for i := range timers {
			c.Publish(fmt.Sprintf("delaytimer.unanswered-%d.orders.x", i), "a", "Delay-For", "1m")
			c.Publish(fmt.Sprintf("delaytimer.answered-%d.orders.x", i), "b", "Delay-For", "66s")
		}
		time.Sleep(time.Until(start.Add(50 * time.Second)))
		o := countOperations(c)
		direct(false)
		time.Sleep(time.Until(start.Add(61 * time.Second)))
		direct(true)
		time.Sleep(time.Until(start.Add(67 * time.Second)))
		synctest.Wait()
		all := in.All()[1:]
		if len(all) != 2*timers {
			t.Fatalf("%d timers were delivered, want %d", len(all), 2*timers)
		}
		for i, a := range all {
			want := start.Add(time.Minute)
			if i >= timers {
				want = start.Add(66 * time.Second)
			}
			if !a.At.Equal(want) {
				t.Errorf("%s was delivered at %s, want %s", a.ID, a.At, want)
			}
		}
		const want = "20 reads, 40 copies in 2 requests, "
		if got := o.String(); !strings.HasPrefix(got, want) {
			t.Errorf("there were %s; want %s", got, want)
		}
	})
}
