package test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"delaybroker/test/natstest"
)

// TestTimerBodiesAreBounded: when many large timers are due at once, their bodies are read as there is room for them,
// and not all at once.
func TestTimerBodiesAreBounded(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := timersOn(t)
		cfg.HoldBytes = 8 << 20
		b := startBroker(t, s, cfg)
		c := newClient(t, s)
		in := c.subscribe("orders.>")
		start := time.Now()
		const many, size = 40, 256 << 10 // 10 MB
		for i := range many {
			c.publish(fmt.Sprintf("delaytimer.%d.orders.x", i), strings.Repeat("x", size), "Delay-Until",
				start.Add(2*time.Minute).UTC().Format(time.RFC3339))
		}
		time.Sleep(time.Until(start.Add(2 * time.Minute)))
		most := 0
		for range 200 {
			for _, l := range b.broker.Status().Lanes {
				most = max(most, l.HeldBytes)
			}
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Minute)
		if got := len(in.all()); got != many {
			t.Errorf("%d came, want %d", got, many)
		}
		if most > 4<<20 || most < size {
			t.Errorf("a lane held %d bytes at once, want some bodies and not all", most)
		}
		c.checkNoTimers()
	})
}
