package timers

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestTenantsTakeTurnsAtReads: the stream's leader does not answer the reads of one tenant's hundred timers.
// Another tenant's timer, which needs a read, too, fires exactly when it is due.
func TestTenantsTakeTurnsAtReads(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := harness.TimerConfig(t)
		var silent atomic.Bool
		cfg.APIPrefix = natstest.Proxy(t, s, func(question string, m *nats.Msg) bool {
			return silent.Load() && strings.Contains(question, "MSG.GET.DELAY_TIMERS") &&
				strings.Contains(string(m.Data), ".att")
		})
		b, c := harness.Start(t, s, cfg)
		victim := c.Subscribe("orders.>")
		b.Crash()
		start := time.Now() // the next active instance must read the starts of these runs
		for key := range 100 {
			c.Publish(fmt.Sprintf("delaytimer.k%d.att.x", key), "", "Delay-For", "10s", "Delay-Max-Wait", "12s")
		}
		debounce(c, start, "10s", "12s", 0)
		silent.Store(true)
		b.Replace()
		debounce(c, start, "10s", "12s", 9*time.Second)
		harness.CheckExactly(t, victim, start.Add(12*time.Second), 0)
	})
}
