package batch

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// batch is a list of items. Only one goroutine uses it at a time.
type batch[T, B any] interface {
	*B
	Add(item T)
	// Size returns the size of the items, in the unit of Limits.
	Size() int
	// Reset removes all items, and may keep their memory.
	Reset()
}

// Limits are the limits of a queue. Room and Full have the unit of Batch.Size.
type Limits struct {
	Room int           // size of all waiting items from which on Add drops further items
	Full int           // size from which on a batch is sent immediately
	Wait time.Duration // maximum time for which an item waits for further items
}

// Queue collects items in batches. A constructor starts nothing: see Run.
type Queue[T, B any, P batch[T, B]] struct {
	limits  Limits
	wake    chan struct{} // wakes Run; capacity 1; never closed
	dropped atomic.Uint64

	mu     sync.Mutex   // guards the fields below; held while one item is added
	open   pending[P]   // the batch to which Add appends; its batch is nil if it is empty
	ready  []pending[P] // full batches, oldest first
	sent   pending[P]   // the batch that is being sent; its batch is nil if there is none
	size   int          // size of open, ready and sent
	free   P            // an empty batch for reuse, or nil
	closed bool         // if true, Add drops all items
}

// pending is a batch that is not sent yet.
type pending[P any] struct {
	batch P
	items int
	since time.Time // local time of the first Add
}

// New returns a queue.
func New[T, B any, P batch[T, B]](l Limits) *Queue[T, B, P] {
	return &Queue[T, B, P]{limits: l, wake: make(chan struct{}, 1)}
}

// Add adds an item, or drops it if there is no room. It may be called from any goroutine, also before Run.
func (q *Queue[T, B, P]) Add(item T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.size >= q.limits.Room || q.closed {
		q.dropped.Add(1)
		return
	}
	if q.open.items == 0 {
		if q.open.batch, q.free = q.free, nil; q.open.batch == nil {
			q.open.batch = new(B)
		}
		q.open.since = time.Now()
		q.signal()
	}
	before := q.open.batch.Size()
	q.open.batch.Add(item)
	q.open.items++
	after := q.open.batch.Size()
	q.size += after - before
	if after >= q.limits.Full {
		q.ready, q.open = append(q.ready, q.open), pending[P]{}
		q.signal()
	}
}

// signal wakes Run.
func (q *Queue[T, B, P]) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// Dropped returns the number of dropped items.
func (q *Queue[T, B, P]) Dropped() uint64 { return q.dropped.Load() }

// Waiting returns the number of items that are neither sent nor dropped, and the local time at which the first of them
// was added. For an empty queue, this is the zero time.
func (q *Queue[T, B, P]) Waiting() (items int, since time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := append([]pending[P]{q.sent}, q.ready...)
	for _, p := range append(all, q.open) {
		if items += p.items; since.IsZero() {
			since = p.since
		}
	}
	return items, since
}

// Run calls send for each batch until ctx ends, and then for the items that still wait. After that, Add drops all
// items. Send gets the local time at which the first item of the batch was added, and returns the number of items that
// it dropped. It may use the batch until it returns. Its context ends after ctx, by the time that grace returns.
func (q *Queue[T, B, P]) Run(
	ctx context.Context, grace func() time.Duration, send func(ctx context.Context, b P, since time.Time) (dropped int),
) {
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(grace(), stop) })()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		stopping := ctx.Err() != nil
		p, wait := q.take(time.Now(), stopping)
		if p.items > 0 {
			q.dropped.Add(uint64(send(work, p.batch, p.since)))
			q.release(p)
			continue
		}
		if stopping {
			return
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
		case <-q.wake:
		case <-timer.C:
		}
	}
}

// take returns the next batch to send, or the maximum time until there is one. If flush is true, take also returns
// items that have waited for less than Limits.Wait, and closes an empty queue.
func (q *Queue[T, B, P]) take(now time.Time, flush bool) (p pending[P], wait time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case len(q.ready) > 0:
		p, q.ready = q.ready[0], q.ready[1:]
	case q.open.items == 0:
		q.closed = flush
		return p, math.MaxInt64
	default:
		if wait = q.open.since.Add(q.limits.Wait).Sub(now); wait > 0 && !flush {
			return p, wait
		}
		p, q.open = q.open, pending[P]{}
	}
	q.sent = p
	return p, 0
}

// release frees the room of a batch that was sent, and keeps one batch for reuse.
func (q *Queue[T, B, P]) release(p pending[P]) {
	size := p.batch.Size()
	p.batch.Reset()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.size -= size
	q.sent, q.free = pending[P]{}, p.batch
}
