package test

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
	"delaybroker/broker/message"
	"delaybroker/broker/pause"
	"delaybroker/test/natstest"
)

// TestOverlappingPauses: a target is paused as long as one pattern matches it, and its messages stay in order whichever
// is resumed first. A part of a pattern cannot be resumed, and the error says what can.
func TestOverlappingPauses(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"orders.>", "orders.eu.*"} {
		t.Run(first, func(t *testing.T) {
			t.Parallel()
			natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
				startBroker(t, s, broker.Config{})
				c, o := newClient(t, s), operator(t, s)
				c.target("EU", "orders.eu.>")
				c.target("US", "orders.us.>")
				count := 0
				send := func() {
					for range 100 {
						for _, land := range []string{"eu", "us"} {
							c.publish("delay.1s.orders."+land+".x", fmt.Sprintf("%06d", count))
						}
						count++
						time.Sleep(10 * time.Millisecond)
					}
				}
				mustPause(t, o, "orders.>")
				send()
				mustPause(t, o, "orders.eu.*")
				send()
				_, err := o.Resume(context.Background(), "orders.eu.x")
				if !errors.Is(err, pause.ErrNotPaused) || !strings.Contains(err.Error(), "orders.>, orders.eu.*") {
					t.Errorf("resume of a part: %v, want the two patterns", err)
				}
				mustResume(t, o, first)
				send()
				time.Sleep(time.Minute)
				us := count
				if first == "orders.eu.*" {
					us = 0
				}
				checkInOrder(t, c.arrivals("US"), us)
				checkInOrder(t, c.arrivals("EU"), 0)
				for _, pattern := range []string{"orders.>", "orders.eu.*"} {
					if pattern != first {
						mustResume(t, o, pattern)
					}
				}
				send()
				time.Sleep(time.Minute)
				checkInOrder(t, c.arrivals("US"), count)
				checkInOrder(t, c.arrivals("EU"), count)
				c.checkEmpty()
			})
		})
	}
}

// TestResumedAtItsRate: what waited goes out at the target's rate. It took its turns before it waited, and takes new
// ones.
func TestResumedAtItsRate(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		startBroker(t, s, broker.Config{Rates: deliver.Rates{{Pattern: "orders.>", Value: 10}}})
		c, o := newClient(t, s), operator(t, s)
		c.target("ORDERS", "orders.>")
		for i := range 200 {
			c.publish("delay.1s.orders.x", fmt.Sprintf("%06d", i))
		}
		time.Sleep(2 * time.Second) // all have their turns by now
		mustPause(t, o, "orders.>")
		before := len(c.arrivals("ORDERS"))
		time.Sleep(time.Hour)
		if got := len(c.arrivals("ORDERS")); got != before || got > 20 {
			t.Errorf("%d arrived before, %d an hour later", before, got)
		}
		mustResume(t, o, "orders.>")
		time.Sleep(time.Hour)
		got := c.arrivals("ORDERS")
		checkInOrder(t, got, 200)
		for i := before + 1; i < len(got); i++ {
			if apart := got[i].At.Sub(got[i-1].At); apart < 99*time.Millisecond {
				t.Fatalf("number %d came %s behind the one before it", i, apart)
			}
		}
	})
}

// TestPausedAgainWhileResumed: a pattern is paused again at every moment of its resumption. What is not out yet waits
// on, and everything goes out in order.
func TestPausedAgainWhileResumed(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		startBroker(t, s, broker.Config{})
		c, o := newClient(t, s), operator(t, s)
		c.target("ORDERS", "orders.>")
		ctx, cancel := context.WithCancel(context.Background())
		count, ended := 0, make(chan struct{})
		go func() {
			defer close(ended)
			for ; ctx.Err() == nil; count++ {
				if err := c.nc.Publish("delay.1s.orders.x", fmt.Appendf(nil, "%06d", count)); err != nil {
					t.Error(err)
				}
				time.Sleep(10 * time.Millisecond)
			}
		}()
		for after := 0; after < 3000; after += 300 {
			mustPause(t, o, "orders.>")
			before := pending(c, "ORDERS")
			time.Sleep(5 * time.Second)
			if got := pending(c, "ORDERS"); got != before {
				t.Fatalf("paused %dms after it was resumed, %d came", after-300, got-before)
			}
			mustResume(t, o, "orders.>")
			time.Sleep(time.Duration(after) * time.Millisecond)
		}
		cancel()
		<-ended
		time.Sleep(time.Minute)
		checkInOrder(t, c.arrivals("ORDERS"), count)
		c.checkEmpty()
	})
}

// TestDeadResentToPaused: a dead letter that is resent to a paused target waits like any other message.
func TestDeadResentToPaused(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		startBroker(t, s, broker.Config{Attempts: 1})
		c, o := newClient(t, s), operator(t, s)
		c.publish("delay.1s.orders.x", "again", message.HeaderDeliver, "stream")
		time.Sleep(time.Minute)
		c.target("ORDERS", "orders.>")
		mustPause(t, o, "orders.>")
		letters, err := o.Letters(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for l, err := range letters.List(context.Background(), deadletter.Query{}) {
			if err == nil {
				err = letters.Resend(context.Background(), l, deadletter.Change{}, letters.Time())
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Hour)
		checkInOrder(t, c.arrivals("ORDERS"), 0)
		mustResume(t, o, "orders.>")
		time.Sleep(time.Minute)
		if got := bodies(c.arrivals("ORDERS")); got != "again" {
			t.Errorf("%q arrived, want again", got)
		}
		c.checkEmpty()
	})
}
