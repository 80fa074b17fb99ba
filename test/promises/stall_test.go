package promises

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestDeliveredOnceAfterStall: the broker's connections stall for some seconds, and no connection is lost. Messages to
// core subscribers that are due after the stall arrive once.
func TestDeliveredOnceAfterStall(t *testing.T) {
	for _, stall := range []time.Duration{time.Second, 3 * time.Second, 6 * time.Second, 9 * time.Second} {
		natstest.Subtest(t, stall.String(), func(t *testing.T, s *natstest.Server) {
			d := s.Staller()
			harness.StartBroker(t, s, broker.Config{Log: harness.NoLog}, nats.SetCustomDialer(d))
			c := harness.NewClient(t, s)
			in := c.Subscribe("ui.>")
			for range 5 { // traffic before the stall
				c.Publish("delay.1s.ui.x", "before")
				time.Sleep(200 * time.Millisecond)
			}
			d.Stall(stall)
			time.Sleep(200 * time.Millisecond)
			for i := range 100 {
				c.Publish("delay.1s.ui.x", fmt.Sprint(i))
				time.Sleep(10 * time.Millisecond)
			}
			time.Sleep(2 * time.Minute)
			copies := map[string]int{}
			for _, a := range in.Arrivals() {
				copies[a.Body]++
			}
			for i := range 100 {
				if n := copies[fmt.Sprint(i)]; n != 1 {
					t.Errorf("message %d, due after the stall, arrived %d times, want once", i, n)
				}
			}
		})
	}
}
