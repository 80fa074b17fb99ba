package timers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/timer"
	"delaybroker/broker/timer/change"
	"delaybroker/broker/timer/timetable"
	declared "delaybroker/cmd/delaybroker/schedules"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// This file tests a wrong clock on the host of a broker or of a shell. Only the server's clock counts.

// wrongClock returns a client on a host whose clock is slow by a duration, or fast if the duration is negative. The
// test simulates this clock: it shifts the server's time in each answer of JetStream. No broker fires the stored
// timers.
func wrongClock(t *testing.T, s *natstest.Server, slow time.Duration) *harness.TimerClient {
	t.Helper()
	harness.StartBroker(t, s, harness.TimerConfig(t)).Stop()
	c := harness.NewSeriesClient(harness.NewClient(t, s))
	asker := s.Connect(nats.Name("asker"))
	c.Timers.API.API = natstest.Proxy(t, s, func(question string, m *nats.Msg) bool {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		answer, err := asker.RequestWithContext(ctx, "$JS.API."+question, m.Data)
		if err != nil {
			t.Errorf("%s: %v", question, err)
			return true
		}
		if err := m.Respond(restamp(answer.Data, slow)); err != nil {
			t.Errorf("%s: %v", question, err)
		}
		return true
	})
	return c
}

// runWrongClocks runs a test with a correct clock, a clock that is slow by an hour, and a clock that is fast by an
// hour.
func runWrongClocks(t *testing.T, run func(t *testing.T, c *harness.TimerClient, now time.Time)) {
	for _, slow := range []time.Duration{0, time.Hour, -time.Hour} {
		natstest.Subtest(t, fmt.Sprint("slow by ", slow), func(t *testing.T, s *natstest.Server) {
			c := wrongClock(t, s, slow)
			run(t, c, time.Now().Add(slow))
		})
	}
}

// TestVerbsByTheServersClock: after a move or a change of the table, a series is due by the server's clock. The maximum
// delay of a request also counts from the server's clock.
func TestVerbsByTheServersClock(t *testing.T) {
	t.Parallel()
	runWrongClocks(t, func(t *testing.T, c *harness.TimerClient, now time.Time) {
		c.Publish("delaytimer.k.orders.x", "body", "Delay-Every", "2h")
		c.Publish("delaytimer.once.orders.x", "once", "Delay-For", "2h")
		c.Timers.Policy.MaxDelay = 24 * time.Hour
		due := func(w change.Change, want time.Time) {
			t.Helper()
			a := c.Do(w)
			if a.Outcome != timer.Moved || !a.Due.Equal(want) {
				t.Errorf("%s is %s, due %s, want %s", w.Key, a.Outcome, a.Due, want)
			}
		}
		w := harness.NewChange(timer.Move, "k", 0)
		w.For = "30m"
		due(w, now.Add(30*time.Minute))
		retime := harness.NewChange(timer.Retime, "k", 0)
		table, err := timetable.Parse(timetable.Settings{Every: "3s"})
		natstest.NoError(t, err)
		retime.Table = &table
		retime.For = "10m"
		due(retime, now.Add(10*time.Minute))
		for _, key := range []string{"k", "once"} {
			latest := now.Add(24 * time.Hour)
			due(moveTo(key, 0, latest), latest)
			if a, err := c.Timers.Do(t.Context(), moveTo(key, 0, latest.Add(time.Second))); err == nil ||
				!strings.Contains(err.Error(), "DELAY_MAX_DELAY") {
				t.Errorf("a move of %s beyond the maximum delay returns %+v, %v", key, a, err)
			}
		}
	})
}

// TestSchedulesByTheServersClock: the server's clock determines the end of a schedule's lifetime, and of an id's
// duplicate window.
func TestSchedulesByTheServersClock(t *testing.T) {
	t.Parallel()
	runWrongClocks(t, func(t *testing.T, c *harness.TimerClient, now time.Time) {
		c.ServeSchedules(t)
		const subject = "schedules.orders.a"
		first, code := c.Schedule(subject, "orders.x", "@every 3s", "hi", "Nats-TTL", "20s", "Nats-Msg-Id", "1")
		if code != 0 {
			t.Fatalf("the schedule is refused: %d", code)
		}
		if got, want := c.LastEntry("delaytimer._schedule."+subject).Header.Get("Delay-Last"),
			now.Add(20*time.Second).UTC().Format(time.RFC3339Nano); got != want {
			t.Errorf("the schedule ends at %s, want %s", got, want)
		}
		time.Sleep(2*time.Minute - 1)
		if seq, code := c.Schedule(subject, "orders.x", "@every 3s", "hi", "Nats-Msg-Id", "1"); seq != first || code != 0 {
			t.Errorf("the answer to the same id is %d, %d, want %d", seq, code, first)
		}
		time.Sleep(time.Nanosecond)
		if seq, code := c.Schedule(subject, "orders.x", "@every 3s", "hi", "Nats-Msg-Id", "1"); seq == first || code != 0 {
			t.Errorf("after two minutes, the answer to the same id is %d, %d", seq, code)
		}
		now = now.Add(2 * time.Minute)
		for ttl, want := range map[string]bool{"13s": true, "11s": false} {
			_, code := c.Schedule("schedules.orders.b", "orders.x", harness.AtExpression(now.Add(12*time.Second)), "hi",
				"Nats-TTL", ttl)
			if code == 0 != want || !want && code != 10165 {
				t.Errorf("code %d for a schedule that is due in 12 s, with a lifetime of %s", code, ttl)
			}
		}
	})
}

// TestApplyByTheServersClock: the server's clock, not the shell's, determines whether a schedule in a file has ended.
func TestApplyByTheServersClock(t *testing.T) {
	t.Parallel()
	runWrongClocks(t, func(t *testing.T, c *harness.TimerClient, now time.Time) {
		text := "set: s\nschedules:\n  k: {every: 1m, target: orders.x, last: " +
			now.Add(30*time.Minute).Format(time.RFC3339Nano) + "}\n  over: {every: 1m, target: orders.x, last: " +
			now.Add(-30*time.Minute).Format(time.RFC3339Nano) + "}\n"
		file, err := declared.Read("file", []byte(text), c.Timers.Policy, time.Now())
		natstest.NoError(t, err)
		got := make(map[string]declared.Action)
		err = declared.Apply{File: file, Timers: c.Timers, Policy: c.Timers.Policy, DryRun: true}.Run(t.Context(),
			func(r declared.Result) { got[r.Name] = r.Action })
		if err != nil || got["k"] != declared.Add || got["over"] != declared.Ended {
			t.Errorf("the plan is %v, %v", got, err)
		}
	})
}

// TestNothingWithoutTheServersClock: if no leader reports its time, a move times out and changes nothing.
func TestNothingWithoutTheServersClock(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, harness.TimerConfig(t)).Stop()
		c := harness.NewSeriesClient(harness.NewClient(t, s))
		natstest.Proxy(t, s, func(question string, m *nats.Msg) bool { return strings.HasPrefix(question, "STREAM.INFO.") })
		c.Timers.API.API = natstest.ProxyAPI
		g := c.Publish("delaytimer.k.orders.x", "body", "Delay-Every", "2h").Sequence
		w := harness.NewChange(timer.Move, "k", 0)
		w.For = "30m"
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if a, err := c.Timers.Do(ctx, w); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the move returns %+v, %v; want %v", a, err, context.DeadlineExceeded)
		}
		checkLast(c.Client, "delaytimer.k.orders.x", g)
	})
}
