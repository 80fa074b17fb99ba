package lane

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/test/natstest"
)

// TestBatchWindow: at the tail, one request receives all messages that were stored within the batch window. In the
// middle of a lane, there is no batch window.
func TestBatchWindow(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		r := newRig(t, s)
		const stored, count, window = 50, 200, 20 * time.Millisecond
		r.burst(1, stored)
		start := time.Now()
		nc := s.Connect()
		rd := r.readerOf(ReaderConfig{Conn: nc, JetStream: s.JetStream(nc), BatchWindow: window})
		for range stored {
			rd.Release(<-rd.Items())
		}
		if took := time.Since(start); took > 0 {
			t.Errorf("%d messages in the middle of the lane took %s, want 0s", stored, took)
		}
		time.Sleep(time.Minute) // until the first request, which has no batch window, has ended
		var requests atomic.Int64
		_, err := s.Connect().Subscribe("$JS.API.CONSUMER.MSG.NEXT.>", func(*nats.Msg) { requests.Add(1) })
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		go func() {
			for i := range count {
				r.publish(stored+i+1, stored+i+1)
				time.Sleep(time.Millisecond)
			}
		}()
		arrivals := make(map[time.Time]bool)
		for want := uint64(stored + 1); want <= stored+count; want++ {
			item := <-rd.Items()
			rd.Release(item)
			if arrivals[time.Now()] = true; item.Sequence != want || time.Since(item.At) > window {
				t.Errorf("number %d came after %s, want %d within %s", item.Sequence, time.Since(item.At), want, window)
			}
		}
		const windows = count/int(window/time.Millisecond) + 1
		if got := len(arrivals); got > windows {
			t.Errorf("%d messages came at %d times, want %d at most", count, got, windows)
		}
		time.Sleep(window)
		synctest.Wait()
		if got := int(requests.Load()); got > windows {
			t.Errorf("%d messages took %d requests, want %d at most", count, got, windows)
		}
	})
}

// TestBatchWindowKeepsOneRequest: an idle lane with a batch window has one open request, and sends no other request
// until a message is stored.
func TestBatchWindowKeepsOneRequest(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		r := newRig(t, s)
		nc := s.Connect()
		rd := r.readerOf(ReaderConfig{Conn: nc, JetStream: s.JetStream(nc), BatchWindow: 20 * time.Millisecond})
		for n := range 3 {
			r.publish(n+1, n+1)
			rd.Release(<-rd.Items())
			time.Sleep(time.Minute)
		}
		var requests atomic.Int64
		_, err := s.Connect().Subscribe("$JS.API.CONSUMER.MSG.NEXT.>", func(*nats.Msg) { requests.Add(1) })
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Minute)
		c, err := r.js.Consumer(context.Background(), r.spec.Stream, r.consumers()[0])
		if err != nil {
			t.Fatal(err)
		}
		if got := c.CachedInfo().NumWaiting; got != 1 || requests.Load() > 0 {
			t.Errorf("%d requests are open, and %d were sent; want 1 and 0", got, requests.Load())
		}
	})
}
