package trace

import (
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"delaybroker/broker"
)

const forever = time.Duration(1<<63 - 1)

// queue holds the messages that wait for their spans. Adding to it never blocks.
type queue struct {
	room, batch int           // messages that may wait, and spans in a request
	delay       time.Duration // the longest time that a message waits for its batch to fill
	bell        chan struct{} // capacity 1; wakes Run; never closed

	mu      sync.Mutex // guards the fields below; held only while one message is copied
	queued  []ended
	waiting int       // messages that are not sent yet, including those that Run has taken
	since   time.Time // local; when the first message of queued was added
	free    []ended   // a slice for reuse, empty or nil
}

// ended is a message that waits for its span.
type ended struct {
	broker.Ended // without its header, which may be large
	parent       trace.SpanContext
	state        string
}

// add queues a message with a copy of its trace state. It returns false if there is no room.
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

// take returns a batch to send, or the time until the next one is due. If all is set, it returns all queued messages.
func (q *queue) take(now time.Time, all bool) (some []ended, wait time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.queued) == 0 {
		return nil, forever
	}
	if wait = q.since.Add(q.delay).Sub(now); wait > 0 && len(q.queued) < q.batch && !all {
		return nil, wait
	}
	some, q.queued, q.free = q.queued, q.free[:0], nil
	return some, 0
}

// sent releases the room of n messages that take has returned.
func (q *queue) sent(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting -= n
}

// giveBack returns a slice from take for reuse.
func (q *queue) giveBack(all []ended) {
	clear(all)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.free = all[:0]
}
