package timers

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// This file tests the number of JetStream operations that a timer costs. The table is in broker/timer/doc.go.

// operations counts a broker's requests about the timers' stream, and its publishes, since the creation of the value.
type operations struct {
	reads, copies, deletes, entries, markers, cursors, arrivals *harness.Inbox
}

func countOperations(c *harness.Client) operations {
	c.T.Helper()
	if c.LastEntry("delaysys.armed") == nil {
		c.T.Fatal("the stream has no cursor yet")
	}
	return operations{
		reads: c.Subscribe("$JS.API.STREAM.MSG.GET.DELAY_TIMERS"), copies: c.Subscribe("$JS.API.DIRECT.GET.DELAY_TIMERS"),
		deletes: c.Subscribe("$JS.API.STREAM.MSG.DELETE.DELAY_TIMERS"), entries: c.Subscribe("delaytimer.>"),
		markers: c.Subscribe("delaysys.hop.>"), cursors: c.Subscribe("delaysys.armed"), arrivals: c.Subscribe("orders.>"),
	}
}

// String returns the counts, without the reads and the removals of cursors.
func (o operations) String() string {
	reads := 0
	for _, a := range o.reads.Arrivals() {
		if strings.Contains(a.Body, "delaytimer.") {
			reads++
		}
	}
	requests, subjects := 0, 0
	for _, a := range o.copies.Arrivals() {
		requests++
		subjects += strings.Count(a.Body, "delaytimer.")
	}
	return fmt.Sprintf("%d reads, %d copies in %d requests, %d deletes, %d entries, %d markers, %d deliveries",
		reads, subjects, requests, len(o.deletes.Arrivals())-len(o.cursors.Arrivals()), len(o.entries.Arrivals()),
		len(o.markers.Arrivals()),
		len(o.arrivals.Arrivals()))
}

// check waits until no request is outstanding, and expects these counts.
func (o operations) check(t *testing.T, name, want string) {
	t.Helper()
	synctest.Wait()
	if got := o.String(); got != want {
		t.Errorf("%s: there were %s; want %s", name, got, want)
	}
}

// oneHopConfig returns a configuration in which the marker of a one-minute timer passes one level.
func oneHopConfig(t *testing.T) broker.Config {
	cfg := harness.TimerConfig(t)
	cfg.Ladder, cfg.TimerHistory = harness.Ladder(t, "1s 58s"), time.Minute
	return cfg
}

// TestOperationsOfTimers: from its marker until its entries are removed, a timer costs four publishes (the marker, the
// claim, the delivery and the outcome) and two deletes. One request for copies serves many timers.
func TestOperationsOfTimers(t *testing.T) {
	t.Parallel()
	harness.Bubble(t, oneHopConfig(t), func(t *testing.T, c *harness.Client) {
		c.Target("ORDERS", "orders.>")
		c.Publish("delaytimer.first.orders.x", "body", "Delay-For", "1s")
		time.Sleep(5 * time.Minute)
		o := countOperations(c)
		due := time.Now().Add(69 * time.Second).UTC().Format(time.RFC3339Nano)
		for i := range 100 {
			c.PublishIf(0, fmt.Sprintf("delaytimer.%d.orders.x", i), "body", "Delay-Until", due)
		}
		time.Sleep(75 * time.Second)
		o.check(t, "timers", // of the entries, 100 are those of the client
			"0 reads, 100 copies in 1 requests, 200 deletes, 300 entries, 100 markers, 100 deliveries")
	})
}

// TestOperationsOfRounds: a round costs three publishes (its claim, which is the next round, the delivery, and the
// marker of the next round) and one delete. One request for copies serves many rounds.
func TestOperationsOfRounds(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	harness.Bubble(t, oneHopConfig(t), func(t *testing.T, c *harness.Client) {
		c.Target("ORDERS", "orders.>")
		for i := range 20 {
			c.PublishIf(0, fmt.Sprintf("delaytimer.%d.orders.x", i), "body", "Delay-Cron", "0 * * * * *")
		}
		time.Sleep(90 * time.Second) // before the first round fires, the worker also reads the earlier entries
		o := countOperations(c)
		time.Sleep(10 * time.Minute)
		o.check(t, "rounds",
			"0 reads, 200 copies in 10 requests, 200 deletes, 200 entries, 200 markers, 200 deliveries")
	})
}

// TestOperationsOfCancels: a cancel costs its publish, a copy and one delete. If the timer has a marker, the marker has
// cost another copy. The stream keeps the cancel for DELAY_TIMER_HISTORY. Then the sweep removes the cancel with one
// read.
func TestOperationsOfCancels(t *testing.T) {
	t.Parallel()
	harness.Bubble(t, oneHopConfig(t), func(t *testing.T, c *harness.Client) {
		c.Target("ORDERS", "orders.>")
		c.Publish("delaytimer.first.orders.x", "body", "Delay-For", "1s")
		time.Sleep(5 * time.Minute)
		due := time.Now().Add(time.Hour).UTC().Format(time.RFC3339Nano)
		for _, tt := range []struct {
			name  string
			wait  time.Duration // until the cancel
			want  string
			swept string // the marker of a cancelled timer hops until its due time, and is dropped then
		}{
			{"in memory", time.Second,
				"0 reads, 10 copies in 10 requests, 10 deletes, 20 entries, 0 markers, 0 deliveries",
				"10 reads, 0 copies in 0 requests, 10 deletes, 0 entries, 0 markers, 0 deliveries"},
			{"with a marker", 11 * time.Second,
				"0 reads, 20 copies in 20 requests, 10 deletes, 20 entries, 10 markers, 0 deliveries",
				"10 reads, 0 copies in 0 requests, 10 deletes, 0 entries, 50 markers, 0 deliveries"},
		} {
			o := countOperations(c)
			sets := make([]uint64, 10)
			for i := range sets {
				sets[i] = c.Publish(fmt.Sprintf("delaytimer.%d.orders.x", i), "body", "Delay-Until", due).Sequence
			}
			time.Sleep(tt.wait)
			for i, set := range sets {
				c.PublishIf(set, fmt.Sprintf("delaytimer.%d.orders.x", i), "", "Delay-Cancel", "x")
			}
			time.Sleep(5 * time.Second)
			o.check(t, tt.name, tt.want)
			o = countOperations(c)
			time.Sleep(5 * time.Minute)
			o.check(t, tt.name+", after the history", tt.swept)
		}
	})
}

// TestTimersWithoutReplicas: the stream allows no direct gets. The broker reads timers and rounds from the leader, and
// they arrive exactly at their due times.
func TestTimersWithoutReplicas(t *testing.T) {
	t.Parallel()
	harness.Bubble(t, oneHopConfig(t), func(t *testing.T, c *harness.Client) {
		in := c.Subscribe("orders.>")
		c.Reconfigure("DELAY_TIMERS", func(cfg *jetstream.StreamConfig) { cfg.AllowDirect = false })
		start := time.Now()
		c.Publish("delaytimer.series.orders.x", "again", "Delay-Every", "1m")
		c.Publish("delaytimer.k.orders.x", "once", "Delay-For", "90s")
		for i, due := range []time.Duration{time.Minute, 90 * time.Second, 2 * time.Minute, 3 * time.Minute} {
			harness.CheckExactly(t, in, start.Add(due), i)
		}
	})
}

// TestTimersDuringBackoff: while replicas refuse its requests, the broker pauses these requests. Timers that become due
// in a pause are read from the leader, and arrive exactly at their due times.
func TestTimersDuringBackoff(t *testing.T) {
	t.Parallel()
	harness.Bubble(t, oneHopConfig(t), func(t *testing.T, c *harness.Client) {
		in := c.Subscribe("orders.>")
		c.Reconfigure("DELAY_TIMERS", func(cfg *jetstream.StreamConfig) { cfg.AllowDirect = false })
		start := time.Now()
		delays := []time.Duration{60, 63, 67, 72, 80, 90, 110, 130, 170, 200, 230, 260} // in seconds
		for i, d := range delays {
			c.Publish(fmt.Sprintf("delaytimer.k%d.orders.x", i), "once", "Delay-For", fmt.Sprintf("%ds", d))
		}
		for i, d := range delays {
			harness.CheckExactly(t, in, start.Add(d*time.Second), i)
		}
	})
}

// TestTimerChangedAfterItWasRead: clients cancel, move and replace timers after the broker has read the bodies, and
// before the due time.
func TestTimerChangedAfterItWasRead(t *testing.T) {
	t.Parallel()
	harness.Bubble(t, oneHopConfig(t), func(t *testing.T, c *harness.Client) {
		in := c.Subscribe("orders.>")
		cancelled := c.Publish("delaytimer.cancelled.orders.x", "no", "Delay-For", "1m").Sequence
		moved := c.Publish("delaytimer.moved.orders.x", "old", "Delay-For", "1m").Sequence
		c.Publish("delaytimer.replaced.orders.x", "older", "Delay-For", "1m")
		time.Sleep(time.Minute - 10*time.Millisecond)
		if c.PublishIf(cancelled, "delaytimer.cancelled.orders.x", "", "Delay-Cancel", "x") == 0 {
			t.Error("a cancel failed after the broker had read the timer")
		}
		again := time.Now()
		if c.PublishIf(moved, "delaytimer.moved.orders.x", "new", "Delay-For", "5m") == 0 {
			t.Error("a move failed after the broker had read the timer")
		}
		c.Publish("delaytimer.replaced.orders.x", "newer", "Delay-For", "10m")
		harness.CheckExactly(t, in, again.Add(5*time.Minute), 0)
		harness.CheckExactly(t, in, again.Add(10*time.Minute), 1)
		time.Sleep(5 * time.Minute)
		harness.CheckBodies(t, in.Arrivals(), "new newer")
		c.CheckNoTimers()
	})
}

// TestDueTimersAskNothing: from a second before the timers are due, JetStream answers no reads and removes no entries.
// Timers and rounds still arrive at their due times.
func TestDueTimersAskNothing(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		var silent atomic.Bool
		natstest.Proxy(t, s, func(question string, _ *nats.Msg) bool {
			return silent.Load() && strings.HasSuffix(question, ".DELAY_TIMERS") &&
				(strings.HasPrefix(question, "STREAM.MSG.") || strings.HasPrefix(question, "DIRECT.GET."))
		})
		cfg := oneHopConfig(t)
		cfg.APIPrefix = natstest.ProxyAPI
		c := harness.StartBroker(t, s, cfg).NewClient()
		in := c.Subscribe("orders.>")
		c.Publish("delaytimer.series.orders.x", "body", "Delay-Every", "1m")
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		due := time.Now().Add(time.Minute) // the third round of the series is also due then
		for i := range 20 {
			c.Publish(fmt.Sprintf("delaytimer.%d.orders.x", i), "body", "Delay-Until", due.UTC().Format(time.RFC3339Nano))
		}
		time.Sleep(59 * time.Second)
		silent.Store(true)
		before := len(in.Arrivals())
		time.Sleep(time.Second)
		synctest.Wait()
		silent.Store(false)
		if got := len(in.Arrivals()) - before; got != 21 {
			t.Errorf("%d arrived at their due times, want 21", got)
		}
	})
}

// TestReplicasAnswerAgain: while replicas do not answer, the broker reads each due timer from the leader. A few seconds
// after replicas answer again, it reads timers from replicas, many in one request. All timers arrive at their due
// times.
func TestReplicasAnswerAgain(t *testing.T) {
	t.Parallel()
	harness.Bubble(t, oneHopConfig(t), func(t *testing.T, c *harness.Client) {
		const timers = 20
		in := c.Subscribe("orders.>")
		direct := func(allowed bool) {
			c.Reconfigure("DELAY_TIMERS", func(cfg *jetstream.StreamConfig) { cfg.AllowDirect = allowed })
		}
		c.Publish("delaytimer.first.orders.x", "body", "Delay-For", "1s")
		time.Sleep(5 * time.Minute)
		start := time.Now()
		for i := range timers {
			c.Publish(fmt.Sprintf("delaytimer.unanswered-%d.orders.x", i), "a", "Delay-For", "1m")
			c.Publish(fmt.Sprintf("delaytimer.answered-%d.orders.x", i), "b", "Delay-For", "66s")
		}
		time.Sleep(time.Until(start.Add(50 * time.Second)))
		o := countOperations(c)
		direct(false)
		time.Sleep(time.Until(start.Add(61 * time.Second)))
		direct(true)
		time.Sleep(time.Until(start.Add(67 * time.Second)))
		synctest.Wait()
		all := in.Arrivals()[1:]
		harness.CheckCount(t, all, 2*timers)
		for i, a := range all {
			want := start.Add(time.Minute)
			if i >= timers {
				want = start.Add(66 * time.Second)
			}
			if !a.At.Equal(want) {
				t.Errorf("%s was delivered at %s, want %s", a.ID, a.At, want)
			}
		}
		const want = "20 reads, 40 copies in 2 requests, "
		if got := o.String(); !strings.HasPrefix(got, want) {
			t.Errorf("there were %s; want %s", got, want)
		}
	})
}
