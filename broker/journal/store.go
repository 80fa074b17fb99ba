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

// publisher publishes messages and matches their answers: see [acks.Inbox.Publish].
type publisher interface {
	Publish(m *nats.Msg, wait time.Duration, f acks.Func)
}

// store stores one batch, whose first record was added at since. It drops the batch, and returns the number of its
// records, if ctx ends, if the connection is closed, or after maxBatchAge. Only one call runs at a time, so the numbers
// in the stream rise.
func (w *Writer) store(ctx context.Context, publisher publisher, b *records, since time.Time) (dropped int) {
	w.number++
	h := head{Instance: w.cfg.Instance, Start: w.start, Number: w.number, Lost: w.queue.Dropped() - w.reported.Load()}
	if h.Lost > 0 {
		w.warn(errDropped)
	}
	w.buffer = b.body(h, w.buffer[:0])
	header := nats.Header{message.HeaderSeal: {w.cfg.Seal(w.cfg.Subject, w.buffer)}, "Nats-Msg-Id": {rand.Text()}}
	for backoff := minBackoff; ; backoff = min(2*backoff, maxBackoff) {
		err := errOld // the batch may have waited for earlier batches
		if time.Since(since) <= maxBatchAge {
			err = w.publish(ctx, publisher, &nats.Msg{Subject: w.cfg.Subject, Header: header, Data: w.buffer})
		}
		if err == nil {
			w.reported.Add(h.Lost)
			w.stored.Add(uint64(b.n))
			return 0
		}
		w.warn(err)
		if ctx.Err() != nil || errors.Is(err, errOld) || errors.Is(err, nats.ErrConnectionClosed) {
			return b.n
		}
		select {
		case <-ctx.Done():
		case <-time.After(backoff):
		}
	}
}

// publish publishes a batch once. It returns nil if the stream has stored the batch.
func (w *Writer) publish(ctx context.Context, publisher publisher, m *nats.Msg) error {
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

// warn logs that the stream stores nothing or too little, at most once in logInterval.
func (w *Writer) warn(err error) {
	if _, ok := w.logLimit.Allow(logInterval); ok {
		w.cfg.Log.Warn("cannot store the journal; deliveries continue, and records that find no room are dropped",
			"stream", w.cfg.Stream, "dropped", w.queue.Dropped(), "err", err)
	}
}
