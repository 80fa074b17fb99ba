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
	// maxBatchAge is the age from which on the writer drops a batch instead of publishing it. So a reader takes a batch
	// with much older records for a copy, and ignores it: see maxRecordAge.
	maxBatchAge = 5 * time.Minute

	minBackoff = 100 * time.Millisecond
	maxBackoff = 2 * time.Second
)

var (
	// errDropped is logged when a batch reports dropped records.
	errDropped = errors.New("records were dropped")
	// errOld is logged when a batch has waited for maxBatchAge.
	errOld = errors.New("the records have waited for too long")
)

// Publisher publishes messages and matches their answers: see [acks.Inbox.Publish].
type Publisher interface {
	Publish(m *nats.Msg, wait time.Duration, f acks.Func)
}

// store stores one batch. It drops the batch if ctx ends, if the connection is closed, or after maxBatchAge. Only one
// call runs at a time, so the numbers in the stream rise.
func (w *Writer) store(ctx context.Context, publisher Publisher, b batch, end bool) {
	w.number++
	h := head{Instance: w.cfg.Instance, Start: w.start, Number: w.number, Previous: w.previous, End: end}
	lost := w.takeLost()
	if lost.Records > 0 {
		h.Lost = &lost
		w.warn(errDropped)
	}
	w.buffer = b.body(h, w.buffer[:0])
	header := nats.Header{message.HeaderSeal: {w.cfg.Seal(w.cfg.Subject, w.buffer)}, "Nats-Msg-Id": {rand.Text()}}
	for backoff := minBackoff; ; backoff = min(2*backoff, maxBackoff) {
		err := errOld // the batch may have waited for earlier batches
		if time.Since(b.firstAdded) <= maxBatchAge {
			err = w.publish(ctx, publisher, &nats.Msg{Subject: w.cfg.Subject, Header: header, Data: w.buffer})
		}
		if err == nil {
			w.previous = w.number
			w.cfg.Counts.Stored.Add(uint64(b.span.Records))
			break
		}
		if ctx.Err() != nil || errors.Is(err, errOld) || errors.Is(err, nats.ErrConnectionClosed) {
			w.drop(b, lost, err)
			break
		}
		w.warn(err)
		select {
		case <-ctx.Done():
		case <-time.After(backoff):
		}
	}
	w.release(b)
}

// publish publishes a batch once. It returns nil if the stream has stored the batch.
func (w *Writer) publish(ctx context.Context, publisher Publisher, m *nats.Msg) error {
	result := make(chan error, 1) // one slot, so the callback does not block after ctx has ended
	publisher.Publish(m, jsapi.Timeout, func(answer *nats.Msg, err error) (pending bool) {
		reply, ok := jsapi.ReplyOf(answer, err, w.cfg.Stream)
		if !ok {
			return true
		}
		result <- reply.Failure()
		return false
	})
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// release frees the room of a batch, and may keep its memory for reuse.
func (w *Writer) release(b batch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waitingBytes -= len(b.lines)
	w.sendingSpan = span{}
	if full := w.fullBytes + lineRoom; cap(b.lines) >= full && cap(b.lines) <= 2*full {
		w.freeBuffer = b.lines[:0]
	}
}

// takeLost returns the dropped records, which the next batch reports.
func (w *Writer) takeLost() span {
	w.mu.Lock()
	defer w.mu.Unlock()
	lost := w.lostSpan
	w.sendingSpan, w.lostSpan = w.sendingSpan.union(lost), span{}
	return lost
}

// drop drops a batch. The next batch reports the records of the dropped batch, and the lost records that the dropped
// batch would have reported.
func (w *Writer) drop(b batch, reported span, err error) {
	w.mu.Lock()
	w.lostSpan = w.lostSpan.union(reported).union(b.span)
	w.mu.Unlock()
	w.cfg.Counts.Dropped.Add(uint64(b.span.Records))
	w.warn(err)
}

// warn logs that the stream stores nothing or too little, at most once in logInterval.
func (w *Writer) warn(err error) {
	if _, ok := w.logLimit.Allow(logInterval); ok {
		w.cfg.Log.Warn("cannot store the journal; deliveries continue, and records that find no room are dropped",
			"stream", w.cfg.Stream, "dropped", w.cfg.Counts.Dropped.Load(), "err", err)
	}
}
