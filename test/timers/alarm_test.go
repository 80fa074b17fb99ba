package timers

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	asking "delaybroker/broker/client"
	"delaybroker/test/clients/snippets"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestAlarmClock: the alarm clock of the snippets rings at its times, through restarts, changes, cancels and failed
// handlers.
func TestAlarmClock(t *testing.T) {
	t.Parallel()
	harness.BubbleWithBroker(t, harness.TimerConfig(t), func(t *testing.T, c *harness.Client, b *harness.Instance) {
		ctx := context.Background()
		delays, err := asking.New(c.JS, asking.Config{})
		natstest.NoError(t, err)
		clock := &snippets.Alarms{Delays: delays, Tries: 3}
		start := time.Now()
		rung := rings(c, clock)
		const hour = time.Hour
		for range 2 { // the second set makes no second alarm
			for _, a := range alarmsFrom(start) {
				a.App = "kitchen"
				natstest.NoError(t, clock.Set(ctx, a))
			}
		}
		time.Sleep(30 * time.Minute)
		b.Stop()
		did := func(ok bool, err error) bool {
			t.Helper()
			if err != nil {
				t.Error(err)
			}
			return ok
		}
		clock = &snippets.Alarms{Delays: delays, Tries: 3} // as after a restart
		if !did(clock.Cancel(ctx, "kitchen", "cancelled")) || did(clock.Cancel(ctx, "kitchen", "nothing")) ||
			!did(clock.Change(ctx, "kitchen", "changed", start.Add(2*hour), start.Add(3*hour))) {
			t.Error("without a broker, a cancel or change failed, or a cancel of a missing alarm succeeded")
		}
		b = b.Replace()
		if !did(clock.RingNow(ctx, "kitchen", "now")) {
			t.Error("a request did not ring an alarm")
		}
		time.Sleep(time.Until(start.Add(hour + 4*time.Minute)))
		synctest.Wait()
		b.Stop()
		if did(clock.Cancel(ctx, "kitchen", "egg")) {
			t.Error("the cancel of an alarm succeeded after it had rung")
		}
		time.Sleep(time.Until(start.Add(hour + 30*time.Minute)))
		b.Replace()
		time.Sleep(2 * hour)
		synctest.Wait()
		want := map[string][]time.Duration{
			"egg": {hour}, "changed": {2 * hour}, "now": {hour / 2},
			"deaf": {hour, hour + time.Minute, hour + 3*time.Minute},
		}
		checkRung(t, rung, want)
	})
}

func alarmsFrom(start time.Time) []snippets.Alarm {
	const hour = time.Hour
	return []snippets.Alarm{
		{ID: "egg", At: start.Add(hour), Latest: start.Add(2 * hour)},
		{ID: "cancelled", At: start.Add(hour), Latest: start.Add(2 * hour)},
		{ID: "changed", At: start.Add(hour), Latest: start.Add(3 * hour)},
		{ID: "now", At: start.Add(hour), Latest: start.Add(2 * hour)},
		// Latest is after the third attempt, and before the fourth.
		{ID: "deaf", At: start.Add(hour), Latest: start.Add(hour + 5*time.Minute)},
		{ID: "missed", At: start.Add(hour + 10*time.Minute), Latest: start.Add(hour + 20*time.Minute)},
	}
}

// rings handles the alarms, and records the times at which each alarm rings. The alarm "deaf" always fails.
func rings(c *harness.Client, clock *snippets.Alarms) map[string][]time.Duration {
	c.T.Helper()
	start, rung := time.Now(), make(map[string][]time.Duration)
	natstest.Handle(c.T, c.NC, "alarms.ring", func(m *nats.Msg) {
		if err := clock.Handle(context.Background(), m, func(a snippets.Alarm) error {
			rung[a.ID] = append(rung[a.ID], time.Since(start))
			if a.ID == "deaf" {
				return errors.New("nobody gets up")
			}
			return nil
		}); err != nil {
			c.T.Error(err)
		}
	})
	return rung
}

// checkRung expects each alarm to have rung at its times or at most a second later, and no other alarm to have rung.
func checkRung(t *testing.T, rung, want map[string][]time.Duration) {
	t.Helper()
	for id, at := range want {
		if got := rung[id]; len(got) != len(at) {
			t.Errorf("%s rang at %v, want %v", id, got, at)
			continue
		}
		for n := range at {
			if late := rung[id][n] - at[n]; late < 0 || late > time.Second {
				t.Errorf("%s rang at %v, want %v", id, rung[id], at)
			}
		}
	}
	if len(rung) != len(want) {
		t.Errorf("rung: %v, want %v", rung, want)
	}
}
