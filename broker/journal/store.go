package journal

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/acks"
	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
)

const (
	// storeWait is how long the stream may take to acknowledge.
	storeWait = 5 * time.Second
	// keepFor is how long a batch is tried. A reader goes by it: no record is stored later than that.
	keepFor = 5 * time.Minute

	leastPause = 100 * time.Millisecond
	mostPause  = 2 * time.Second
)

// errRoom is what is said when more was to be stored than the stream took.
var errRoom = errors.New("it is slower than deliveries are")

// Publisher publishes, and finds the answers: see [acks.Inbox.Publish].
type Publisher interface {
	Publish(m *nats.Msg, wait time.Duration, f acks.Func)
}

// store stores one batch, or drops it when it was tried for long enough. One batch is on its way at a time, so that
// their numbers rise in the stream.
func (w *Writer) store(ctx context.Context, to Publisher, b batch, end bool) {
	w.number++
	h := head{Instance: w.cfg.Instance, Start: w.start, Number: w.number, Before: w.before, End: end}
	gone := w.takeLost()
	if gone.Records > 0 {
		h.Lost = &gone
		w.say(errRoom)
	}
	w.buffer = b.body(h, w.buffer[:0])
	header := nats.Header{message.HeaderSeal: {w.cfg.Seal(w.cfg.Subject, w.buffer)}, "Nats-Msg-Id": {rand.Text()}}
	for pause := leastPause; ; pause = min(2*pause, mostPause) {
		err := w.publish(ctx, to, &nats.Msg{Subject: w.cfg.Subject, Header: header, Data: w.buffer})
		if err == nil {
			w.before = w.number
			w.cfg.Counts.Stored.Add(uint64(b.span.Records))
			break
		}
		if ctx.Err() != nil || time.Since(b.since) > keepFor || errors.Is(err, nats.ErrConnectionClosed) {
			w.drop(b, gone, err)
			break
		}
		w.say(err)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	w.done(b)
}

// publish returns nil when the stream has the batch.
func (w *Writer) publish(ctx context.Context, to Publisher, m *nats.Msg) error {
	result := make(chan error, 1)
	to.Publish(m, storeWait, func(answer *nats.Msg, err error) (again bool) {
		reply, ok := jsapi.ReplyOf(answer, err, w.cfg.Stream)
		if !ok {
			return true
		}
		select {
		case result <- reply.Problem():
		default: // nobody waits any more
		}
		return false
	})
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// done gives the room of a batch back.
func (w *Writer) done(b batch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting -= len(b.lines)
	w.sending = span{}
	if full := w.most + spareLine; cap(b.lines) >= full && cap(b.lines) <= 2*full {
		w.spare = b.lines[:0]
	}
}

// takeLost is what the next batch has to say about records that were dropped.
func (w *Writer) takeLost() span {
	w.mu.Lock()
	defer w.mu.Unlock()
	gone := w.lost
	w.sending, w.lost = w.sending.add(gone), span{}
	return gone
}

// drop gives a batch up. The next one says so, and what this one would have said.
func (w *Writer) drop(b batch, gone span, err error) {
	w.mu.Lock()
	w.lost = w.lost.add(gone).add(b.span)
	w.mu.Unlock()
	w.cfg.Counts.Dropped.Add(uint64(b.span.Records))
	w.say(err)
}

// say tells the log, once in a while.
func (w *Writer) say(err error) {
	if _, ok := w.said.Allow(sayEvery); ok {
		w.cfg.Log.Warn("the journal is not stored: deliveries go on, and records of them are dropped when there is no room; "+
			"trying again", "stream", w.cfg.Stream, "dropped", w.cfg.Counts.Dropped.Load(), "err", err)
	}
}
