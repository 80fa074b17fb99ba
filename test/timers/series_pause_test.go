package timers

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/timer"
	"delaybroker/broker/timer/store"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// This file tests Delay-Pause-After.

// failingService answers the requests to a subject: with an error while the returned value is true.
func failingService(c *harness.Client, subject string) *atomic.Bool {
	c.T.Helper()
	fails := new(atomic.Bool)
	fails.Store(true)
	c.Service(subject, func(int) *nats.Msg {
		if fails.Load() {
			return harness.FailureReply("no stock")
		}
		return new(nats.Msg)
	})
	return fails
}

// pausing returns the headers of a series that is paused after three dead letters in a row.
func pausing(every, attempts string) []string {
	return []string{
		"Delay-Every", every, "Delay-Pause-After", "3", "Delay-Deliver", "request", "Delay-Max-Attempts", attempts,
	}
}

const pausedReason = "paused after dead letters in a row (3): the service says 500 no stock"

// checkPaused expects a paused series whose list and state show the reason.
func checkPaused(c *harness.TimerClient, key, reason string) {
	c.T.Helper()
	synctest.Wait()
	got := c.Do(harness.NewChange(timer.Get, key, 0))
	if got.Outcome != timer.Paused || !strings.Contains(got.Why, reason) {
		c.T.Errorf("the series is %s: %q, want paused: %q", got.Outcome, got.Why, reason)
	}
	list, err := c.Timers.List(c.T.Context(), store.Filter{State: timer.Paused, Key: key}, store.Page{})
	if err != nil || len(list.Timers) != 1 || list.Timers[0].Why != got.Why {
		c.T.Errorf("the list has %+v, %v", list.Timers, err)
	}
}

// TestFailingSeriesIsPaused: three rounds in a row become dead letters, and the series is paused, once and with the
// reason. A move between the rounds does not end the row. A resumed series begins another row.
func TestFailingSeriesIsPaused(t *testing.T) {
	t.Parallel()
	harness.BubbleWithBroker(t, harness.TimerConfig(t), func(t *testing.T, plain *harness.Client, b *harness.Instance) {
		const s = time.Second
		c := harness.NewSeriesClient(plain)
		fails, in, start := failingService(plain, "orders.x"), c.Subscribe("orders.>"), time.Now()
		g := c.Publish(recurring, "body", pausing("10s", "1")...).Sequence
		time.Sleep(25 * s)
		w := harness.NewChange(timer.Move, "k", 0)
		w.By = 5 * s
		c.Check(w, timer.Moved, 0)
		time.Sleep(time.Until(start.Add(105 * s)))
		checkPaused(c, "k", pausedReason)
		in.CheckRounds(t, g, start, 10*s, 20*s, 35*s)
		if got := c.DeadLetters()["undelivered"]; len(got) != 3 {
			t.Errorf("there are %d dead letters, want 3", len(got))
		}
		if n := b.Broker.Status().PausedSeries; n != 1 {
			t.Errorf("%d series were paused, want 1", n)
		}

		c.Do(harness.NewChange(timer.Resume, "k", 0)) // a missed round fires at once, and fails
		time.Sleep(10 * s)
		if got := c.Do(harness.NewChange(timer.Get, "k", 0)); got.Outcome != timer.Pending || got.Why != "" {
			t.Errorf("after the resumption and two dead letters: %+v", got)
		}
		fails.Store(false)
		time.Sleep(50 * s)
		in.CheckRounds(t, g, start, 10*s, 20*s, 35*s, 105*s, 110*s, 120*s, 130*s, 140*s, 150*s, 160*s)
		c.Do(harness.NewChange(timer.Cancel, "k", 0))
		time.Sleep(time.Minute)
		c.CheckNoTimersBut("DELAY_DEAD")
	})
}

// TestSuccessEndsTheRow: a delivered round between dead letters begins another row, and so does a round that is
// delivered at its second attempt.
func TestSuccessEndsTheRow(t *testing.T) {
	t.Parallel()
	harness.Bubble(t, harness.TimerConfig(t), func(t *testing.T, plain *harness.Client) {
		c := harness.NewSeriesClient(plain)
		fails := failingService(plain, "orders.x")
		c.Publish(recurring, "body", pausing("1m", "2")...)
		time.Sleep(30 * time.Second)
		for _, failing := range []bool{true, true, false, true, true, true} {
			fails.Store(failing)
			time.Sleep(time.Minute)
		}
		checkPaused(c, "k", pausedReason)
		c.Do(harness.NewChange(timer.Resume, "k", 0))
		for _, failing := range []bool{true, true} {
			fails.Store(failing)
			time.Sleep(time.Minute)
		}
		time.Sleep(30500 * time.Millisecond)
		fails.Store(false) // between the two attempts of the third round
		time.Sleep(29500 * time.Millisecond)
		fails.Store(true)
		time.Sleep(2 * time.Minute)
		c.Check(harness.NewChange(timer.Get, "k", 0), timer.Pending, c.LastEntry(recurring).Sequence)
		time.Sleep(time.Minute)
		checkPaused(c, "k", pausedReason)
	})
}

// TestPauseAfterTakeOver: an instance stores the third dead letter, and crashes before it has paused the series. The
// next one stores the same letter once, and pauses the series. The letter is from a retry lane, or from the timers.
func TestPauseAfterTakeOver(t *testing.T) {
	t.Parallel()
	for name, attempts := range map[string]string{"from the timers": "1", "from a retry lane": "2"} {
		natstest.Subtest(t, name, func(t *testing.T, s *natstest.Server) {
			cfg := harness.TimerConfig(t)
			silent := harness.Mute(t, s, &cfg, "STREAM.MSG.GET.DELAY_TIMERS")
			b, plain := harness.Start(t, s, cfg)
			c := harness.NewSeriesClient(plain)
			failingService(plain, "orders.x")
			c.Publish(recurring, "body", pausing("30s", attempts)...)
			time.Sleep(89 * time.Second) // the third round has been read
			silent.Store(true)
			time.Sleep(11 * time.Second)
			synctest.Wait()
			if got := c.DeadLetters()["undelivered"]; len(got) != 3 {
				t.Fatalf("there are %d dead letters, want 3", len(got))
			}
			c.Check(harness.NewChange(timer.Get, "k", 0), timer.Pending, c.LastEntry(recurring).Sequence)
			b.Crash()
			silent.Store(false)
			b.Replace()
			time.Sleep(time.Minute)
			checkPaused(c, "k", pausedReason)
			if got := c.DeadLetters()["undelivered"]; len(got) != 3 {
				t.Errorf("there are %d dead letters, want 3", len(got))
			}
		})
	}
}

// TestFailingSeriesDoNotDisturbOthers: five hundred series of one tenant fail at the same moment, and the stream's
// leader does not answer the reads that pause them. The failing series of another tenant is paused at once, and the
// other tenant's other series is on time. When the leader answers again, all series are paused.
func TestFailingSeriesDoNotDisturbOthers(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := harness.TimerConfig(t)
		var silent atomic.Bool
		cfg.APIPrefix = natstest.Proxy(t, s, func(question string, m *nats.Msg) bool {
			return silent.Load() && strings.Contains(question, "MSG.GET.DELAY_TIMERS") &&
				strings.Contains(string(m.Data), ".att.")
		})
		b, plain := harness.Start(t, s, cfg)
		c := harness.NewSeriesClient(plain)
		failingService(plain, "att.x")
		failingService(plain, "orders.x")
		in, first := c.Subscribe("orders.ok"), time.Now().Add(time.Minute)
		const count = 500
		header := append(pausing("1h", "1"), "Delay-Until", first.Format(time.RFC3339Nano))
		header[3] = "1" // Delay-Pause-After
		for key := range count {
			c.Publish(fmt.Sprintf("delaytimer.k%d.att.x", key), "body", header...)
		}
		c.Publish(recurring, "body", header...)
		c.Publish("delaytimer.k.orders.ok", "body", "Delay-Until", header[len(header)-1], "Delay-Every", "1s")
		time.Sleep(time.Until(first.Add(-time.Millisecond)))
		silent.Store(true)
		time.Sleep(100 * time.Millisecond)
		checkPaused(c, "k", "paused after dead letters in a row (1): the service")
		if n := b.Broker.Status().PausedSeries; n != 1 {
			t.Errorf("%d series are paused, want 1", n)
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		for i, a := range in.Arrivals() {
			if late := a.At.Sub(first.Add(time.Duration(i) * time.Second)); late != 0 {
				t.Errorf("round %d of the other tenant is late by %s", i+1, late)
			}
		}
		silent.Store(false)
		time.Sleep(time.Minute)
		if n := b.Broker.Status().PausedSeries; n != count+1 {
			t.Errorf("%d series were paused, want %d", n, count+1)
		}
	})
}
