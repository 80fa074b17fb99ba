package service

import (
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// request is a message to be answered.
type request struct {
	*nats.Msg
	endpoint *endpoint
	tenant   string // see endpoint.tenant
	received time.Time
}

// queue holds requests until a worker takes them: see the package documentation.
type queue struct {
	max   int // the maximum number of waiting requests
	share int // the maximum number of concurrent requests of one tenant

	mu      sync.Mutex // guards the fields below
	change  *sync.Cond // signals a new turn, and the close of the queue
	tenants map[string]*tenant
	turns   []*tenant // tenants that have a waiting request, and have not reached share; the first is next
	waiting int       // the number of waiting requests of all tenants
	closed  bool
}

// tenant is a tenant with a request that waits or is being carried out.
type tenant struct {
	name    string
	waiting []request
	working int  // the number of requests that workers carry out
	inTurns bool // queue.turns has the tenant
}

func newQueue(maxWaiting, share int) *queue {
	q := &queue{max: maxWaiting, share: share, tenants: make(map[string]*tenant)}
	q.change = sync.NewCond(&q.mu)
	return q
}

// put adds a request. If the queue is full, put returns the refused request. That is r, unless another tenant has more
// waiting requests than r's tenant would have with r. Then the newest request of the tenant with the most waiting
// requests is refused.
func (q *queue) put(r request) (refused request, full bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := q.tenants[r.tenant]
	if t == nil {
		t = &tenant{name: r.tenant}
	}
	if q.waiting >= q.max {
		most := t
		for _, other := range q.tenants {
			if len(other.waiting) > len(most.waiting) {
				most = other
			}
		}
		last := len(most.waiting) - 1
		if last <= len(t.waiting) {
			return r, true
		}
		refused, full = most.waiting[last], true
		most.waiting[last] = request{}
		most.waiting = most.waiting[:last]
		q.waiting--
	}
	q.tenants[r.tenant] = t
	t.waiting = append(t.waiting, r)
	q.waiting++
	q.giveTurn(t)
	return refused, full
}

// giveTurn appends a tenant to the turns, if the tenant has a waiting request, and has not reached share.
func (q *queue) giveTurn(t *tenant) {
	if !t.inTurns && len(t.waiting) > 0 && t.working < q.share {
		t.inTurns = true
		q.turns = append(q.turns, t)
		q.change.Signal()
	}
}

// take waits for a request. ok is false if the queue is closed and empty. The caller must call done when it has carried
// out the request.
func (q *queue) take() (r request, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.turns) == 0 {
		if q.closed && q.waiting == 0 {
			return request{}, false
		}
		q.change.Wait()
	}
	t := q.turns[0]
	q.turns[0] = nil
	q.turns = q.turns[1:]
	r, t.waiting[0] = t.waiting[0], request{}
	t.waiting = t.waiting[1:]
	q.waiting--
	t.working++
	t.inTurns = false
	q.giveTurn(t)
	if q.closed && q.waiting == 0 {
		q.change.Broadcast()
	}
	return r, true
}

// done ends a request that take returned. After that, the tenant may have a turn.
func (q *queue) done(r request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := q.tenants[r.tenant]
	t.working--
	q.giveTurn(t)
	if t.working == 0 && len(t.waiting) == 0 {
		delete(q.tenants, t.name)
	}
}

// close announces that no more requests will be put.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.change.Broadcast()
}
