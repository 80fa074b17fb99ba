package trace

import (
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"delaybroker/broker"
)

const forever = time.Duration(1<<63 - 1)

// queue is the messages that wait for their spans. Whoever adds to it waits for nobody.
type queue struct {
	room, batch int // messages that may wait, and spans in a request
	delay       time.Duration
	bell        chan struct{} // of one place; it wakes who takes. Closed by nobody

	mu      sync.Mutex // guards what follows; it is held for as long as it takes to copy one message
	queued  []ended
	waiting int       // those that were taken, and not sent, included
	since   time.Time // local; when the first was queued
	spare   []ended   // a slice that was sent
}

// ended is a message whose span is to be made.
type ended struct {
	broker.Ended // without its header, which may be large
	parent       trace.SpanContext
	state        string
}

// add queues a message, with a state of its own, unless there is no room.
func (q *queue) add(e ended, now time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting >= q.room {
		return false
	}
	if len(q.queued) == 0 {
		q.since = now
		q.ring()
	}
	e.state = strings.Clone(e.state)
	q.queued = append(q.queued, e)
	q.waiting++
	if len(q.queued) == q.batch {
		q.ring()
	}
	return true
}

func (q *queue) ring() {
	select {
	case q.bell <- struct{}{}:
	default:
	}
}

// take returns what is to be sent, or how long until something is. All takes what there is.
func (q *queue) take(now time.Time, all bool) (some []ended, wait time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.queued) == 0 {
		return nil, forever
	}
	if wait = q.since.Add(q.delay).Sub(now); wait > 0 && len(q.queued) < q.batch && !all {
		return nil, wait
	}
	some, q.queued, q.spare = q.queued, q.spare[:0], nil
	return some, 0
}

// sent makes room for as many as were taken.
func (q *queue) sent(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting -= n
}

// giveBack takes a slice that take has returned, to be filled anew.
func (q *queue) giveBack(all []ended) {
	clear(all)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.spare = all[:0]
}
