package operate

import (
	"slices"
	"testing"
	"time"

	"delaybroker/broker"
	"delaybroker/broker/inspect"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestDeliveredIsNotOverdue: messages are delivered, and the server does not answer the purges that remove them. They
// are neither overdue nor in the list of the waiting messages.
func TestDeliveredIsNotOverdue(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := broker.Config{Ladder: harness.Ladder(t, "1s 5s 1m")}
		operator := harness.Inspect(t, s, cfg)
		on := harness.Mute(t, s, &cfg, "STREAM.PURGE.")
		on.Store(true)
		_, c := harness.Start(t, s, cfg)
		c.Target("T", "t.>")
		c.Publish("delay.5s.t.level", "level")
		c.Publish("delayin.7s.t.intake", "intake")
		c.Publish("delay.1m.t.later", "later")
		c.Publish("delay.1s.nobody", "refused")
		time.Sleep(20 * time.Second)
		harness.CheckBodies(t, c.Arrivals("T"), "intake level")
		v, err := operator.Lanes(t.Context(), 0)
		natstest.NoError(t, err)
		for _, l := range v.Lanes {
			if l.Overdue != 0 {
				t.Errorf("%s has %d messages, overdue by %v s; want none that is overdue", l.Stream, l.Pending, l.Overdue)
			}
		}
		list, err := operator.Pending(t.Context(), inspect.PendingQuery{Limit: 10, MaxRead: 100})
		natstest.NoError(t, err)
		var got []string
		for _, m := range list.Messages {
			got = append(got, m.Target+" in "+m.Stream)
		}
		if want := []string{"nobody in DELAY_RETRY_30s", "t.later in DELAY_1m"}; !slices.Equal(got, want) {
			t.Errorf("the list has %q, want %q", got, want)
		}
		on.Store(false)
		time.Sleep(time.Minute)
		c.CheckEmptyBut("DELAY_RETRY_30s", "T")
	})
}
