package service

import (
	"slices"
	"sync"
)

// Queue holds requests until a worker carries them out. Tenants take turns: see the package documentation. Create a
// Queue with NewQueue. It is safe for concurrent use.
type Queue[R any] struct {
	max   int // the maximum number of waiting requests
	share int // the maximum number of concurrent requests of one tenant

	mu      sync.Mutex // guards the fields below
	change  *sync.Cond // signals a new turn, and the close of the queue
	tenants map[string]*tenant[R]
	turns   []*tenant[R] // tenants that have a request that may begin, and have not reached share; the first is next
	waiting int          // the number of waiting requests of all tenants
	closed  bool
}

// tenant is a tenant with a request that waits or is being carried out.
type tenant[R any] struct {
	name    string
	waiting []place[R]
	working []string // the objects of the requests that workers carry out
	inTurns bool     // Queue.turns has the tenant
}

// place is the place of a request in a Queue.
type place[R any] struct {
	request R
	object  string
}

// NewQueue returns an empty Queue in which at most maxWaiting requests wait. Workers carry out at most share requests
// of one tenant concurrently.
func NewQueue[R any](maxWaiting, share int) *Queue[R] {
	q := &Queue[R]{max: maxWaiting, share: share, tenants: make(map[string]*tenant[R])}
	q.change = sync.NewCond(&q.mu)
	return q
}

// Put adds a request. The requests of a tenant about the same object are carried out one after the other, in order; an
// empty object means that the order does not matter. If the queue is full, Put returns the refused request. That is r,
// unless another tenant has more waiting requests than this tenant would have with r. Then the newest request of the
// tenant with the most waiting requests is refused.
func (q *Queue[R]) Put(name, object string, r R) (refused R, full bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := q.tenants[name]
	if t == nil {
		t = &tenant[R]{name: name}
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
		refused, full = most.waiting[last].request, true
		most.waiting = slices.Delete(most.waiting, last, last+1)
		q.waiting--
	}
	q.tenants[name] = t
	t.waiting = append(t.waiting, place[R]{r, object})
	q.waiting++
	q.giveTurn(t)
	return refused, full
}

// next returns the index of the tenant's first request that may begin, or -1.
func (t *tenant[R]) next() int {
	return slices.IndexFunc(t.waiting, func(p place[R]) bool {
		return p.object == "" || !slices.Contains(t.working, p.object)
	})
}

// giveTurn appends a tenant to the turns, if the tenant has a request that may begin, and has not reached share.
func (q *Queue[R]) giveTurn(t *tenant[R]) {
	if !t.inTurns && len(t.working) < q.share && t.next() >= 0 {
		t.inTurns = true
		q.turns = append(q.turns, t)
		q.change.Signal()
	}
}

// Work carries out requests until the queue is closed and empty. Several workers may call it.
func (q *Queue[R]) Work(carryOut func(R)) {
	for {
		p, t := q.take()
		if t == nil {
			return
		}
		carryOut(p.request)
		q.done(p, t)
	}
}

// take waits for a request. It returns no tenant if the queue is closed and empty.
func (q *Queue[R]) take() (p place[R], t *tenant[R]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	next := -1
	for next < 0 { // Put may have removed the request for which a tenant got its turn
		for len(q.turns) == 0 {
			if q.closed && q.waiting == 0 {
				return p, nil
			}
			q.change.Wait()
		}
		t = q.turns[0]
		q.turns = slices.Delete(q.turns, 0, 1)
		t.inTurns = false
		next = t.next()
	}
	p = t.waiting[next]
	t.waiting = slices.Delete(t.waiting, next, next+1)
	q.waiting--
	t.working = append(t.working, p.object)
	q.giveTurn(t)
	if q.closed && q.waiting == 0 {
		q.change.Broadcast()
	}
	return p, t
}

// done ends a request that take returned. After that, the tenant may have a turn.
func (q *Queue[R]) done(p place[R], t *tenant[R]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(t.working, p.object)
	t.working = slices.Delete(t.working, i, i+1)
	q.giveTurn(t)
	if len(t.working) == 0 && len(t.waiting) == 0 {
		delete(q.tenants, t.name)
	}
}

// Close announces that no more requests will be put.
func (q *Queue[R]) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.change.Broadcast()
}
