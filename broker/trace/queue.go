package trace

import (
	"math"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"delaybroker/broker"
)

// queue holds the messages that wait for their spans.
type queue struct {
	capacity int           // maximum number of waiting messages
	batch    int           // maximum number of spans in a request
	delay    time.Duration // maximum time for which a message waits for further messages
	wake     chan struct{} // wakes Run; capacity 1; never closed

	mu         sync.Mutex // guards the fields below
	pending    []pendingSpan
	unsent     int           // number of messages that are not sent yet, including the messages that Run has taken
	firstAdded time.Time     // local time at which the first message of pending was added
	freeSlice  []pendingSpan // a slice for reuse, empty or nil
}

// pendingSpan is a message that waits for its span.
type pendingSpan struct {
	broker.Ended // without the header, which may be large
	parent       trace.SpanContext
	state        string
}

// add queues a message with a copy of its trace state. It returns false if there is no room.
func (q *queue) add(e pendingSpan, now time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.unsent >= q.capacity {
		return false
	}
	if len(q.pending) == 0 {
		q.firstAdded = now
		q.signal()
	}
	e.state = strings.Clone(e.state)
	q.pending = append(q.pending, e)
	q.unsent++
	if len(q.pending) == q.batch {
		q.signal()
	}
	return true
}

func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// take returns all queued messages if they fill a batch, if delay has passed since the first of them was added, or if
// flush is set. Otherwise, take returns the time until delay has passed. For an empty queue, this is the longest
// duration.
func (q *queue) take(now time.Time, flush bool) (queued []pendingSpan, wait time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.pending) == 0 {
		return nil, math.MaxInt64
	}
	if wait = q.firstAdded.Add(q.delay).Sub(now); wait > 0 && len(q.pending) < q.batch && !flush {
		return nil, wait
	}
	queued, q.pending, q.freeSlice = q.pending, q.freeSlice[:0], nil
	return queued, 0
}

// release makes room for n messages: take has returned n, and their spans are sent or dropped.
func (q *queue) release(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.unsent -= n
}

// recycle accepts a slice from take for reuse.
func (q *queue) recycle(queued []pendingSpan) {
	clear(queued)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.freeSlice = queued[:0]
}
