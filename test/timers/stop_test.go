package timers

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestCleanStopSettlesTimers: a delivered timer is not sent again after a clean stop, although its entries could not be
// removed until just before the stop. If they cannot be removed at all, the log says so.
func TestCleanStopSettlesTimers(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		headers []string
		refused time.Duration // after the stop began
		end     error
	}{
		"once":      {[]string{"Delay-For", "2s"}, time.Second, nil},
		"recurring": {[]string{"Delay-Every", "1h", "Delay-For", "2s"}, time.Second, nil},
		"never":     {[]string{"Delay-For", "2s"}, time.Minute, broker.ErrGrace},
	} {
		parallel(t, name, func(t *testing.T, s *natstest.Server) {
			cfg := harness.TimersOn(t)
			refusing := harness.Meddle(t, s, &cfg, "STREAM.MSG.DELETE.", func(m *nats.Msg) {
				_ = m.Respond([]byte(`{"error":{"code":503,"err_code":10008,"description":"temporarily unavailable"}}`))
			})
			b := harness.StartBroker(t, s, cfg)
			c := harness.NewClient(t, s)
			in := c.Subscribe("orders.>")
			c.Publish("delaytimer.k.orders.x", "body", tt.headers...)
			time.Sleep(1500 * time.Millisecond)
			refusing.Store(true)
			time.Sleep(700 * time.Millisecond) // it is delivered
			time.AfterFunc(tt.refused, func() { refusing.Store(false) })
			b.Ended = true
			b.Cancel()
			if err := <-b.Done; !errors.Is(err, tt.end) {
				t.Errorf("the stop ends with %v, want %v", err, tt.end)
			}
			b.Close()
			if tt.end != nil {
				return
			}
			harness.StartBroker(t, s, cfg)
			time.Sleep(time.Minute)
			synctest.Wait()
			if n := len(in.All()); n != 1 {
				t.Errorf("it came %d times, want once", n)
			}
		})
	}
}
