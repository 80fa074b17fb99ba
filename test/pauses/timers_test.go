package pauses

import (
	"testing"
	"time"

	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestTimersOfPausedTarget: timers that become due for a paused target, near ones and ones that waited in a level, fire
// into the lane of the pause. When the target is resumed, each reaches it once, in the order of due times. A timer that
// is cancelled before it is due never does.
func TestTimersOfPausedTarget(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, harness.TimersOn(t))
		c, o := harness.NewClient(t, s), harness.Operator(t, s)
		c.Target("ORDERS", "orders.>")
		c.Publish("delaytimer.far.orders.x", "000001", "Delay-For", "10m")
		cancelled := c.Expect(0, "delaytimer.gone.orders.x", "never", "Delay-For", "10m")
		harness.MustPause(t, o, "orders.>")
		c.Publish("delaytimer.near.orders.x", "000000", "Delay-For", "2s")
		if c.Expect(cancelled, "delaytimer.gone.orders.x", "", "Delay-Cancel", "paid") == 0 {
			t.Error("a timer for a paused target cannot be cancelled before it is due")
		}
		time.Sleep(20 * time.Minute)
		if got := c.Arrivals("ORDERS"); len(got) > 0 {
			t.Errorf("while it is paused, the target got %v", got)
		}
		harness.MustResume(t, o, "orders.>")
		time.Sleep(5 * time.Minute)
		harness.CheckInOrder(t, c.Arrivals("ORDERS"), 2)
		c.CheckNoTimersBut("DELAY_PAUSED") // which has the list of pauses
		c.CheckNoDead()
	})
}
