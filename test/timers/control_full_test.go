package timers

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	asking "delaybroker/broker/client"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/store"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestFullStreamOfTimers: the stream of timers is full. The service, the commands and the client say that there is no
// room. A request for a schedule gets the server's own answer.
func TestFullStreamOfTimers(t *testing.T) {
	t.Parallel()
	for name, full := range map[string]func(*jetstream.StreamConfig){
		"bytes":    func(cfg *jetstream.StreamConfig) { cfg.MaxBytes = 100 },
		"messages": func(cfg *jetstream.StreamConfig) { cfg.MaxMsgs = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			natstest.BubbleWith(t, server.Options{}, func(t *testing.T, s *natstest.Server) {
				harness.StartBroker(t, s, harness.SchedulesOn(t))
				c := harness.NewSeriesClient(harness.NewClient(t, s))
				asks, err := asking.New(c.JS, asking.Config{})
				natstest.NoError(t, err)
				c.Publish("delaytimer.once.orders.x", "once", "Delay-For", "2h")
				last := c.Publish("delaytimer.k.orders.x", "body", "Delay-Every", "2h").Sequence
				time.Sleep(time.Minute)
				c.Reconfigure("DELAY_TIMERS", full)
				for _, request := range []string{"timer.cancel.once.orders.x", "timer.fire.once.orders.x",
					"timer.fire.k.orders.x", "timer.pause.k.orders.x"} {
					var got any
					if code := c.CallService(&got, "delayctl."+request, ""); code != "507" {
						t.Errorf("%s is answered %q %v, want 507", request, code, got)
					}
				}
				refused := (*store.Refusal)(nil)
				if a, err := c.Timers.Do(t.Context(), harness.NewChange(timer.Cancel, "once", 0)); !errors.As(err, &refused) ||
					refused.Code != 507 || !strings.Contains(refused.Sentence, "maximum "+name+" exceeded") {
					t.Errorf("the verb says %+v, %v", a, err)
				}
				if err := asks.Pause(t.Context(), "k", "orders.x"); !errors.Is(err, asking.ErrFull) {
					t.Errorf("the client says %v", err)
				}
				soon := harness.At(time.Now().Add(time.Hour))
				if _, code := c.Schedule("schedules.orders.a", "orders.x", soon, "hi"); code != 10077 {
					t.Errorf("a schedule is answered %d, want 10077", code)
				}
				checkLast(c.Client, "delaytimer.k.orders.x", last)
			})
		})
	}
}
