package lane

import (
	"context"
	"crypto/rand"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/test/natstest"
)

// TestRequestsUsedUpExactly: a reader continues after messages have used up the bytes of a request exactly. Nats-server
// ends such a request without a report. The test covers the middle of a lane, and the tail, where the reader would
// otherwise wait for 25 minutes. The buffers of the readers differ by one byte each, over a range larger than a
// message, so the messages use up some requests exactly.
func TestRequestsUsedUpExactly(t *testing.T) {
	const stored, added = 20, 15           // messages
	const minBuffer, maxBuffer = 900, 1020 // bytes
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		r := newRig(t, s)
		r.burst(1, stored)
		var readers []*owner
		for buffer := minBuffer; buffer < maxBuffer; buffer++ {
			nc := s.Connect()
			o := r.readerOf(ReaderConfig{Conn: nc, JetStream: s.JetStream(nc), Buffer: buffer})
			go o.take(1 << 30)
			readers = append(readers, o)
		}
		for _, o := range readers {
			o.check(1, stored)
		}
		time.Sleep(time.Minute)
		for i := range added {
			r.publish(stored+i+1, stored+i+1)
			time.Sleep(50 * time.Millisecond)
			for _, o := range readers {
				o.check(1, stored+i+1)
				o.checkEpochs("fresh")
			}
		}
	})
}

// TestFewRequestsWait: at most three requests of a reader wait at the server at any time. For each message, the server
// visits all waiting requests.
func TestFewRequestsWait(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		r := newRig(t, s)
		o := r.read(s.Connect(), 0)
		last := 0
		for i := range 3000 { // one to three messages together, after which the reader is at the tail again
			n := 1 + i%3
			r.burst(last+1, last+n)
			last += n
			time.Sleep(10 * time.Millisecond)
			if i%100 > 0 {
				continue
			}
			c, err := r.js.Consumer(context.Background(), r.spec.Stream, r.consumers()[0])
			if err != nil {
				t.Fatal(err)
			}
			if got := c.CachedInfo().NumWaiting; got > maxRequests {
				t.Fatalf("after %d messages, %d requests wait, want %d at most", last, got, maxRequests)
			}
		}
		o.check(1, last)
		o.checkEpochs("fresh")
	})
}

// TestNextPlace: the remaining messages and bytes of the open requests determine whether another request is needed.
func TestNextPlace(t *testing.T) {
	const size = 1000
	fresh := place{batch: pullBatch, messagesLeft: pullBatch, bytesRequested: size, bytesLeft: size}
	used := place{batch: pullBatch, messagesLeft: pullBatch / 2, bytesRequested: size, bytesLeft: size}
	full := place{batch: pullBatch, messagesLeft: pullBatch, bytesRequested: size, bytesLeft: size / 2}
	over := place{batch: pullBatch, bytesRequested: size, bytesLeft: size}
	exact := place{batch: pullBatch, messagesLeft: pullBatch, bytesRequested: size}
	quick := fresh
	quick.quick = true
	quickUsed := used
	quickUsed.quick = true
	for _, tt := range []struct {
		name        string
		places      [maxRequests]place
		tail, large bool
		place       int // of the next request, or -1 for none
	}{
		{"no request", [maxRequests]place{}, true, false, 0},
		{"no open request", [maxRequests]place{over, exact, over}, false, false, 0},
		{"fresh at the tail", [maxRequests]place{fresh}, true, false, -1},
		{"half used at the tail", [maxRequests]place{over, used}, true, false, 0},
		{"half of the bytes used", [maxRequests]place{full}, true, false, 1},
		{"half of the bytes used, large", [maxRequests]place{full}, true, true, -1},
		{"two half used", [maxRequests]place{used, full}, true, false, -1},
		{"slow, not at the tail", [maxRequests]place{fresh}, false, false, 1},
		{"two slow, not at the tail", [maxRequests]place{used, over, fresh}, false, false, 1},
		{"quick, not at the tail", [maxRequests]place{quick}, false, false, -1},
		{"half used and quick, not at the tail", [maxRequests]place{quickUsed}, false, false, 1},
		{"slow, and half used and quick", [maxRequests]place{used, quickUsed}, false, false, -1},
		{"all places taken", [maxRequests]place{used, used, used}, false, false, -1},
	} {
		rs := requests{places: tt.places}
		place, ok := rs.nextPlace(tt.tail, tt.large)
		if ok != (tt.place >= 0) || ok && place != tt.place {
			t.Errorf("%s: %d, %v, want %d", tt.name, place, ok, tt.place)
		}
	}
}

// TestScanUsedUpExactly: a scan continues when the messages of a batch have used up its bytes exactly.
func TestScanUsedUpExactly(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		r := newRig(t, s)
		store := func(size int) { r.store(&nats.Msg{Subject: "delay.30m.x", Data: make([]byte, size)}) }
		fill := func(last int) {
			for range 4 {
				store(900_000)
			}
			store(last)
			store(0) // the first message after the batch
		}
		fill(500_000)
		free := scanBytes - r.sizeOf(5)
		r.replace()
		fill(500_000 + free)
		if got := r.sizeOf(5); got != scanBytes {
			t.Fatalf("five messages take %d bytes, want %d", got, scanBytes)
		}
		start := time.Now()
		if got, err := r.scanned(r.scan()); err != nil || len(got) != 6 {
			t.Errorf("got %d messages and %v, want 6", len(got), err)
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("the scan took %s, want 0s", took)
		}
	})
}

// sizeOf returns the size of the first messages of the stream as the server counts it for a scan.
func (r *rig) sizeOf(count int) (size int) {
	r.t.Helper()
	c, err := r.js.CreateConsumer(context.Background(), r.spec.Stream, jetstream.ConsumerConfig{
		Name: r.scan().Observer + "-" + rand.Text(), AckPolicy: jetstream.AckNonePolicy,
	})
	if err != nil {
		r.t.Fatal(err)
	}
	batch, err := c.Fetch(count)
	if err != nil {
		r.t.Fatal(err)
	}
	for m := range batch.Messages() {
		size += len(m.Subject()) + len(m.Reply()) + len(m.Data())
	}
	if err := r.js.DeleteConsumer(context.Background(), r.spec.Stream, c.CachedInfo().Name); err != nil {
		r.t.Fatal(err)
	}
	return size
}

// TestRequestsOverlap: the reader sends the next request when half of the first request's messages have come, so that
// the server always has an open request.
func TestRequestsOverlap(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		r := newRig(t, s)
		r.burst(1, 2*pullBatch)
		synctest.Wait()
		tap := s.Connect()
		sub, err := tap.SubscribeSync("$JS.API.CONSUMER.MSG.NEXT.>")
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()          // until the server knows the subscription
		r.reader(s.Connect(), 0) // with an owner that takes no items
		synctest.Wait()
		if got, _, err := sub.Pending(); err != nil || got != 2 {
			t.Errorf("%d requests while %d of %d messages are read, want 2 (%v)", got, bufferItems, pullBatch, err)
		}
	})
}

// TestControlOfEarlierRequest: a control message for an earlier request does not end the next request in the same
// place.
func TestControlOfEarlierRequest(t *testing.T) {
	for subject, want := range map[string]bool{"_INBOX.x.0.7": true, "_INBOX.x.0.8": false} {
		p := &pull{r: NewReader(ReaderConfig{}), tail: true}
		places := &p.requests.places
		places[0] = place{reply: "_INBOX.x.0.8", messagesLeft: 5, bytesRequested: 5, bytesLeft: 5}
		places[1] = place{
			batch:          pullBatch,
			messagesLeft:   pullBatch,
			bytesRequested: 5,
			bytesLeft:      5,
		} // so that no other request is needed
		timeout := &nats.Msg{Subject: subject, Header: nats.Header{"Status": {"408"}}}
		if err := p.control(t.Context(), &places[0], timeout); err != nil || places[0].open() != want {
			t.Errorf("after a timeout on %s: open is %v, want %v (%v)", subject, places[0].open(), want, err)
		}
	}
}
