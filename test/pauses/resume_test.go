package pauses

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"delaybroker/broker"
	"delaybroker/broker/deadletter"
	"delaybroker/broker/deliver"
	"delaybroker/broker/inspect"
	"delaybroker/broker/message"
	"delaybroker/broker/pause"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestOverlappingPauses: a target is paused as long as one paused pattern matches the target, and its messages stay in
// order if either pattern is resumed first. A resume of a part of a pattern fails, and the error names the paused
// patterns.
func TestOverlappingPauses(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"orders.>", "orders.eu.*"} {
		natstest.Subtest(t, first, func(t *testing.T, s *natstest.Server) {
			c, o := start(t, s, broker.Config{})
			c.Target("EU", "orders.eu.>")
			c.Target("US", "orders.us.>")
			count := 0
			send := func() {
				for range 100 {
					for _, land := range []string{"eu", "us"} {
						c.Publish("delay.1s.orders."+land+".x", fmt.Sprintf("%06d", count))
					}
					count++
					time.Sleep(10 * time.Millisecond)
				}
			}
			harness.MustPause(t, o, "orders.>")
			send()
			harness.MustPause(t, o, "orders.eu.*")
			send()
			_, err := o.Resume(context.Background(), "orders.eu.x")
			if !errors.Is(err, pause.ErrNotPaused) || !strings.Contains(err.Error(), "orders.>, orders.eu.*") {
				t.Errorf("resume of a part: %v, want the two patterns", err)
			}
			harness.MustResume(t, o, first)
			send()
			time.Sleep(time.Minute)
			us := count
			if first == "orders.eu.*" {
				us = 0
			}
			harness.CheckInOrder(t, c.Arrivals("US"), us)
			harness.CheckInOrder(t, c.Arrivals("EU"), 0)
			for _, pattern := range []string{"orders.>", "orders.eu.*"} {
				if pattern != first {
					harness.MustResume(t, o, pattern)
				}
			}
			send()
			time.Sleep(time.Minute)
			harness.CheckInOrder(t, c.Arrivals("US"), count)
			harness.CheckInOrder(t, c.Arrivals("EU"), count)
			c.CheckEmpty()
		})
	}
}

// TestResumedAtItsRate: after the resumption, waiting messages arrive at the target's rate. The broker reserved their
// send times before the pause, and the pause postpones these times.
func TestResumedAtItsRate(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	cfg := broker.Config{Rates: deliver.Rates{{Pattern: "orders.>", Value: 10}}}
	bubble(t, cfg, func(t *testing.T, c *harness.Client, o *inspect.Inspector) {
		for i := range 200 {
			c.Publish("delay.1s.orders.x", fmt.Sprintf("%06d", i))
		}
		time.Sleep(2 * time.Second) // all messages have reserved send times
		harness.MustPause(t, o, "orders.>")
		before := len(c.Arrivals("ORDERS"))
		time.Sleep(10 * time.Minute)
		if got := len(c.Arrivals("ORDERS")); got != before || got > 20 {
			t.Errorf("%d had arrived before, %d ten minutes later", before, got)
		}
		harness.MustResume(t, o, "orders.>")
		time.Sleep(10 * time.Minute)
		got := c.Arrivals("ORDERS")
		harness.CheckInOrder(t, got, 200)
		harness.CheckSpread(t, got[before:], 1, 99*time.Millisecond)
	})
}

// TestPausedAgainWhileResumed: a pattern is paused again several times, at different moments of its resumption. The
// remaining messages continue to wait, and all messages arrive in order.
func TestPausedAgainWhileResumed(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	bubble(t, broker.Config{}, func(t *testing.T, c *harness.Client, o *inspect.Inspector) {
		ctx, cancel := context.WithCancel(context.Background())
		count, ended := 0, make(chan struct{})
		go func() {
			defer close(ended)
			for ; ctx.Err() == nil; count++ {
				publishNumber(c, count, "delay.1s.orders.x")
				time.Sleep(10 * time.Millisecond)
			}
		}()
		for after := 0; after < 3000; after += 300 {
			harness.MustPause(t, o, "orders.>")
			before := harness.Pending(c, "ORDERS")
			time.Sleep(5 * time.Second)
			if got := harness.Pending(c, "ORDERS"); got != before {
				t.Fatalf("%d messages arrived while paused; the last resumption had lasted %d ms", got-before, after-300)
			}
			harness.MustResume(t, o, "orders.>")
			time.Sleep(time.Duration(after) * time.Millisecond)
		}
		cancel()
		<-ended
		time.Sleep(time.Minute)
		harness.CheckInOrder(t, c.Arrivals("ORDERS"), count)
		c.CheckEmpty()
	})
}

// TestClosingPauseThroughTakeOver: the active instance stops when a pause is closing. The next one closes the pause
// again, which takes a second, because an instance may not have read the state "closing" yet.
func TestClosingPauseThroughTakeOver(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		instances, o := harness.StartBrokers(t, s, 2, broker.Config{Leaser: harness.Together}), harness.Operator(t, s)
		time.Sleep(time.Minute)
		stateBecomes := func(want pause.State) time.Time {
			for range 1000 {
				list, err := o.Pauses(context.Background())
				natstest.NoError(t, err)
				if len(list) == 0 && want == pause.Over || len(list) > 0 && list[0].State == want {
					return time.Now()
				}
				time.Sleep(10 * time.Millisecond)
			}
			t.Fatalf("the pause is not %s within 10s", want)
			return time.Time{}
		}
		harness.MustPause(t, o, "orders.>")
		harness.MustResume(t, o, "orders.>")
		stopped := stateBecomes(pause.Closing)
		instances[harness.Active(t, instances...)].Stop()
		if got := stateBecomes(pause.Over).Sub(stopped); got < time.Second {
			t.Errorf("the pause was over %s after the active instance stopped, want a second or more", got)
		}
	})
}

// TestDeadResentToPaused: a dead letter that is resent to a paused target waits like any other message.
func TestDeadResentToPaused(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		c, o := start(t, s, broker.Config{Attempts: 1})
		c.Publish("delay.1s.orders.x", "again", message.HeaderDeliver, "stream")
		time.Sleep(time.Minute)
		c.Target("ORDERS", "orders.>")
		harness.MustPause(t, o, "orders.>")
		letters, err := o.Letters(context.Background())
		natstest.NoError(t, err)
		for l, err := range letters.List(context.Background(), deadletter.Query{}) {
			if err == nil {
				err = letters.Resend(context.Background(), l, deadletter.Resend{}, letters.Time())
			}
			natstest.NoError(t, err)
		}
		time.Sleep(10 * time.Minute)
		harness.CheckInOrder(t, c.Arrivals("ORDERS"), 0)
		harness.MustResume(t, o, "orders.>")
		time.Sleep(time.Minute)
		harness.CheckBodies(t, c.Arrivals("ORDERS"), "again")
		c.CheckEmpty()
	})
}
