package promises

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"delaybroker/broker"
	"delaybroker/broker/message"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestSlack: with a slack, each message arrives at the end of the slack in which it is due, to the nanosecond: never
// early, and never later than that, however many levels it has passed. So all that are due in one slack arrive
// together.
func TestSlack(t *testing.T) {
	t.Parallel()
	for _, slack := range []time.Duration{time.Millisecond, 20 * time.Millisecond, 250 * time.Millisecond} {
		t.Run(slack.String(), func(t *testing.T) {
			t.Parallel()
			natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
				harness.StartBroker(t, s, broker.Config{Ladder: harness.Ladder(t, "1s 10s 1m"), Slack: slack})
				c := harness.NewClient(t, s)
				in := c.Subscribe("orders.>")
				time.Sleep(time.Second) // until the leaders' clocks are known to the nanosecond
				random := rand.New(rand.NewPCG(1, 2))
				const count = 300
				for i := range count {
					subject := "delay.1s.orders.x" // some of these go past the tail of the level, some make it
					if i%3 == 0 {
						subject = fmt.Sprintf("delayin.%dms.orders.x", random.IntN(200_000))
					}
					c.Publish(subject, "x")
					time.Sleep(time.Duration(random.IntN(10_000_000)))
				}
				time.Sleep(4 * time.Minute)
				all := in.All()
				if len(all) != count {
					t.Fatalf("%d messages arrived, want %d", len(all), count)
				}
				batches := make(map[time.Time]bool)
				for _, m := range all {
					due, err := time.Parse(time.RFC3339Nano, m.Header.Get(message.HeaderDue))
					if err != nil {
						t.Fatal(err)
					}
					want := due.Truncate(slack)
					if want.Before(due) {
						want = want.Add(slack)
					}
					together := slack <= 20*time.Millisecond // with a longer one, a lane with hops does not wait for its end
					if m.At.Before(due) || m.At.Sub(due) > slack || together && !m.At.Equal(want) {
						t.Errorf("due %s, arrived %s later, want %s", due.Format(time.StampMicro), m.At.Sub(due), want.Sub(due))
					}
					batches[m.At] = true
				}
				t.Logf("%d messages in %d batches", count, len(batches))
				c.CheckNoDead()
				c.CheckEmpty()
			})
		})
	}
}
