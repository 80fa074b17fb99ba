package tenants

import (
	"fmt"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestQuotaByPrefix: the server holds the quota of a tenant with a prefix of its own, though no broker runs. The flood
// of one tenant takes no room from the other.
func TestQuotaByPrefix(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		const quota = 5
		for _, prefix := range []string{"orders-delay", "payments-delay"} {
			cfg := broker.Config{Prefix: prefix, Ladder: harness.Ladder(t, "1s 1m"), MaxPending: quota, Log: harness.NoLog}
			harness.StartBroker(t, s, cfg).Stop()
		}
		c := harness.NewClient(t, s)
		for _, subject := range []string{"orders-delay.1m.orders.%d", "orders-delayin.1001s.orders.%d"} {
			accepted := 0
			for i := range 20 * quota { // a target each, so that no quota of a single target would hold
				if harness.Accepts(c.JS, fmt.Sprintf(subject, i), "flood") {
					accepted++
				}
			}
			if accepted != quota {
				t.Errorf("%s: %d messages are accepted, want %d", subject, accepted, quota)
			}
		}
		for i := range quota {
			c.Publish("payments-delay.1m.payments.x", fmt.Sprint(i))
			c.Publish("payments-delayin.1001s.payments.x", fmt.Sprint(i))
		}
	})
}

// TestQuotaByTargetEscaped: why there is no quota for each target in shared lanes. The server counts subjects, and in
// the intake the duration stands before the target: each request of a flood has its own subject.
func TestQuotaByTargetEscaped(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := broker.Config{Ladder: harness.Ladder(t, "1s 1m"), Log: harness.NoLog}
		harness.StartBroker(t, s, cfg).Stop()
		c := harness.NewClient(t, s)
		for _, stream := range []string{"DELAY_INTAKE", "DELAY_1m"} {
			c.Reconfigure(stream, func(cfg *jetstream.StreamConfig) {
				cfg.MaxMsgsPerSubject, cfg.DiscardNewPerSubject, cfg.Discard = 5, true, jetstream.DiscardNew
			})
		}
		for subject, want := range map[string]int{"delay.1m.orders.x": 5, "delayin.%ds.orders.x": 100} {
			accepted := 0
			for i := range 100 {
				request := subject
				if want == 100 {
					request = fmt.Sprintf(subject, 1001+i)
				}
				if harness.Accepts(c.JS, request, "flood") {
					accepted++
				}
			}
			if accepted != want {
				t.Errorf("%s: %d messages are accepted, want %d", subject, accepted, want)
			}
		}
	})
}
