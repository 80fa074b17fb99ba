package client_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/broker/client"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestPublisherKeepsOrder: the messages of a goroutine are stored once, in the order of its calls.
func TestPublisherKeepsOrder(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, broker.Config{Ladder: harness.Ladder(t, "1s 1m")})
		c, _ := newClient(t, s, client.Config{})
		p := c.Publisher(16)
		const count = 500
		var messages []*client.Pending
		for i := range count {
			pending, err := p.In(t.Context(), "shop.x", time.Minute, fmt.Append(nil, i))
			if err != nil {
				t.Fatal(err)
			}
			messages = append(messages, pending)
		}
		if err := p.Flush(t.Context()); err != nil {
			t.Errorf("flush: %v", err)
		}
		for i, pending := range messages {
			select {
			case <-pending.Done():
			default:
				t.Fatalf("message %d is not answered after Flush", i)
			}
			if r, err := pending.Wait(t.Context()); err != nil || r.Sequence != uint64(i+1) || r.Stream != "DELAY_1m" {
				t.Fatalf("message %d: got %+v, %v, want sequence %d of DELAY_1m", i, r, err, i+1)
			}
		}
	})
}

// TestWindowIsBounded: while the window is full, a call waits until its context ends or there is room.
func TestWindowIsBounded(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		c, nc := newClient(t, s, client.Config{Timeout: 5 * time.Second})
		received := swallow(t, nc, "delay.>")
		p := c.Publisher(2)
		began := time.Now()
		for range 2 {
			if _, err := p.In(t.Context(), "shop.x", time.Hour, nil); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := p.In(ctx, "shop.x", time.Hour, nil)
		wantError(t, err, context.DeadlineExceeded)
		natstest.CheckElapsed(t, began, time.Second)
		if received.Load() != 2 {
			t.Errorf("%d messages were published, want two", received.Load())
		}
		pending, err := p.In(t.Context(), "shop.x", time.Hour, nil) // waits until the first two have timed out
		if err != nil {
			t.Fatal(err)
		}
		natstest.CheckElapsed(t, began, 5*time.Second)
		_, err = pending.Wait(ctx)
		wantError(t, err, context.DeadlineExceeded)
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := p.Flush(ctx); err == nil || err.Error() != "1 messages have no answer yet: context deadline exceeded" {
			t.Errorf("Flush: got %v, want one message without an answer", err)
		}

		err = p.Flush(t.Context())
		natstest.CheckElapsed(t, began, 10*time.Second)
		wantError(t, err, client.ErrUnanswered)
		if want := "3 messages were not acknowledged, the first: "; err == nil || err.Error()[:len(want)] != want {
			t.Errorf("got %v, want %s…", err, want)
		}
		if err := p.Flush(t.Context()); err != nil {
			t.Errorf("the next Flush: got %v, want nil", err)
		}
		if _, err := pending.Wait(t.Context()); !errors.Is(err, client.ErrUnanswered) {
			t.Errorf("got %v, want ErrUnanswered", err)
		}
	})
}

// TestCloseWaits: Close waits for the answers to all earlier messages. After Close, the publisher accepts no message.
func TestCloseWaits(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, broker.Config{Ladder: harness.Ladder(t, "1s 1m")})
		c, nc := newClient(t, s, client.Config{})
		p := c.Publisher(8)
		var accepted, answered atomic.Int64
		var publishing sync.WaitGroup
		for range 4 {
			publishing.Go(func() {
				for range 400 {
					pending, err := p.In(t.Context(), "shop.x", time.Minute, nil)
					if errors.Is(err, client.ErrClosed) {
						return
					}
					if err != nil {
						t.Errorf("publish: %v", err)
						return
					}
					if accepted.Add(1) == 300 {
						publishing.Go(func() {
							if err := p.Close(t.Context()); err != nil {
								t.Errorf("close: %v", err)
							}
							_, err := p.At(t.Context(), "shop.x", time.Now(), nil)
							wantError(t, err, client.ErrClosed)
						})
					}
					if _, err := pending.Wait(t.Context()); err == nil {
						answered.Add(1)
					}
				}
			})
		}
		publishing.Wait()
		stored, err := s.JetStream(nc).Stream(t.Context(), "DELAY_1m")
		if err != nil {
			t.Fatal(err)
		}
		n := int64(stored.CachedInfo().State.LastSeq)
		if n != answered.Load() || n != accepted.Load() || n < 300 || n > 1599 {
			t.Errorf("%d messages are stored, %d accepted and %d answered, want equal numbers from 300 to 1599", n,
				accepted.Load(), answered.Load())
		}
		if err := p.Close(t.Context()); err != nil { // again
			t.Errorf("a second close: %v", err)
		}
	})
}

// TestCloseAfterFailures: Close reports the messages that were not acknowledged, and can be called again after its
// context has ended.
func TestCloseAfterFailures(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		c, nc := newClient(t, s, client.Config{Timeout: 5 * time.Second})
		swallow(t, nc, "delay.>")
		p := c.Publisher(4)
		if _, err := p.Level(t.Context(), "shop.x", "1h", nil); err != nil {
			t.Fatal(err)
		}
		_, err := p.In(t.Context(), "shop.*", time.Hour, nil)
		wantError(t, err, client.ErrBadTarget)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wantError(t, p.Close(ctx), context.DeadlineExceeded)
		wantError(t, p.Close(t.Context()), client.ErrUnanswered)
		_, err = p.In(t.Context(), "shop.x", time.Hour, nil)
		wantError(t, err, client.ErrClosed)
	})
}

// TestDisconnected: if the connection is lost before the answer, the publish fails with ErrUnanswered, before its
// timeout.
func TestDisconnected(t *testing.T) { // not in parallel: see natstest.DropTimers
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		c, nc := newClient(t, s, client.Config{Timeout: time.Minute})
		swallow(t, nc, "delay.>")
		p := c.Publisher(0)
		pending, err := p.In(t.Context(), "shop.x", time.Hour, nil, client.ID("x/1"))
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		began := time.Now()
		s.Restart(time.Second)
		_, err = pending.Wait(t.Context())
		wantError(t, err, client.ErrUnanswered)
		if elapsed := time.Since(began); elapsed >= time.Minute {
			t.Errorf("the publish failed after %s, want less than the timeout", elapsed)
		}
		if err := p.Close(t.Context()); !errors.Is(err, client.ErrUnanswered) {
			t.Errorf("close: %v", err)
		}
	})
}

// swallow subscribes to a subject and does not answer. It returns the number of received messages.
func swallow(t *testing.T, nc *nats.Conn, subject string) *atomic.Int64 {
	t.Helper()
	n := new(atomic.Int64)
	if _, err := nc.Subscribe(subject, func(*nats.Msg) { n.Add(1) }); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return n
}
