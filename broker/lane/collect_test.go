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

// TestCollect: at the tail, one request gets all messages that are stored in the given time, immediately. In the middle
// of a lane, the reader does not collect.
func TestCollect(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		r := newRig(t, s)
		const before, count, collect = 50, 200, 20 * time.Millisecond
		r.burst(1, before)
		began := time.Now()
		nc := s.Connect()
		rd := r.readerOf(ReaderConfig{Conn: nc, JetStream: s.JetStream(nc), Collect: collect})
		for range before {
			rd.Took(<-rd.Items())
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("%d messages in the middle of the lane took %s", before, took)
		}
		time.Sleep(time.Minute) // the first request does not collect, and ends
		var requests atomic.Int64
		_, err := s.Connect().Subscribe("$JS.API.CONSUMER.MSG.NEXT.>", func(*nats.Msg) { requests.Add(1) })
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		go func() {
			for i := range count {
				r.publish(before+i+1, before+i+1)
				time.Sleep(time.Millisecond)
			}
		}()
		arrivals := make(map[time.Time]bool)
		for want := uint64(before + 1); want <= before+count; want++ {
			item := <-rd.Items()
			rd.Took(item)
			if arrivals[time.Now()] = true; item.Sequence != want || time.Since(item.At) > collect {
				t.Errorf("number %d came after %s, want %d within %s", item.Sequence, time.Since(item.At), want, collect)
			}
		}
		const spans = count/int(collect/time.Millisecond) + 1
		if got := len(arrivals); got > spans {
			t.Errorf("%d messages came at %d times, want %d at most", count, got, spans)
		}
		time.Sleep(collect)
		synctest.Wait()
		if got := int(requests.Load()); got > spans {
			t.Errorf("%d messages took %d requests, want %d at most", count, got, spans)
		}
	})
}

// TestCollectKeepsOneRequest: a lane that collects and is idle has one request open, and sends none until a message
// comes.
func TestCollectKeepsOneRequest(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		r := newRig(t, s)
		nc := s.Connect()
		rd := r.readerOf(ReaderConfig{Conn: nc, JetStream: s.JetStream(nc), Collect: 20 * time.Millisecond})
		for n := range 3 {
			r.publish(n+1, n+1)
			rd.Took(<-rd.Items())
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
			t.Errorf("%d requests are open after %d more, want 1 after 0", got, requests.Load())
		}
	})
}
