package timers

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestTimerBodiesAreBounded: when many large timers are due at once, their bodies are read as there is room for them,
// and not all at once.
func TestTimerBodiesAreBounded(t *testing.T) {
	natstest.Long(t)
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := harness.TimersOn(t)
		cfg.HoldBytes = 8 << 20
		b := harness.StartBroker(t, s, cfg)
		c := harness.NewClient(t, s)
		in := c.Subscribe("orders.>")
		start := time.Now()
		const many, size = 40, 256 << 10 // 10 MB
		for i := range many {
			c.Publish(fmt.Sprintf("delaytimer.%d.orders.x", i), strings.Repeat("x", size), "Delay-Until",
				start.Add(2*time.Minute).UTC().Format(time.RFC3339))
		}
		time.Sleep(time.Until(start.Add(2 * time.Minute)))
		most := 0
		for range 200 {
			for _, l := range b.Broker.Status().Lanes {
				most = max(most, l.HeldBytes)
			}
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Minute)
		if got := len(in.All()); got != many {
			t.Errorf("%d came, want %d", got, many)
		}
		if most > 4<<20 || most < size {
			t.Errorf("a lane held %d bytes at once, want some bodies and not all", most)
		}
		c.CheckNoTimers()
	})
}
