package service

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
)

// ask is a request of a tenant, identified by its subject.
func ask(tenant string, n int) request {
	return request{Msg: &nats.Msg{Subject: fmt.Sprint(tenant, n)}, tenant: tenant}
}

// TestTurns: tenants are served in turn, each in the order of its requests, and none has more than its share at the
// same time.
func TestTurns(t *testing.T) {
	q := newQueue(100, 2)
	for n := range 4 {
		q.put(ask("a", n))
	}
	q.put(ask("b", 0))
	q.put(ask("c", 0))
	var got []string
	var taken []request
	take := func() {
		r, ok := q.take()
		if !ok {
			t.Fatal("the queue is closed")
		}
		taken, got = append(taken, r), append(got, r.Subject)
	}
	for range 4 {
		take()
	}
	if len(q.turns) > 0 {
		t.Errorf("%s has a turn, and no room in its share", q.turns[0].name)
	}
	q.put(ask("b", 1))
	q.done(taken[0])
	take()
	take()
	if got := strings.Join(got, " "); got != "a0 b0 c0 a1 b1 a2" {
		t.Errorf("the requests are taken in the order %s", got)
	}
	q.done(taken[3])
	take()
	for _, r := range append(taken[1:3], taken[4:]...) {
		q.done(r)
	}
	if q.waiting > 0 || len(q.tenants) > 0 || len(q.turns) > 0 {
		t.Errorf("after the last request, %d requests wait, and %d tenants are left", q.waiting, len(q.tenants))
	}
}

// TestFullQueue: when the queue is full, the tenant with the most requests loses its last one. A tenant that has fewer
// always finds room.
func TestFullQueue(t *testing.T) {
	q := newQueue(6, 1)
	var refused []string
	put := func(r request) {
		if r, full := q.put(r); full {
			refused = append(refused, r.Subject)
		}
	}
	for n := range 8 {
		put(ask("a", n))
	}
	put(ask("b", 0))
	put(ask("b", 1))
	put(ask("c", 0))
	put(ask("c", 1))
	if got := strings.Join(refused, " "); got != "a6 a7 a5 a4 a3 a2" {
		t.Errorf("the refused requests are %s", got)
	}
	for n := 2; n < 5; n++ { // now all tenants have the same number
		put(ask("b", n))
	}
	if got := strings.Join(refused[6:], " "); got != "b2 b3 b4" {
		t.Errorf("with equally many requests of each tenant, the refused requests are %s", got)
	}
	put(ask("d", 0))
	if len(refused) != 10 || refused[9] == "d0" || q.waiting != 6 {
		t.Errorf("the refused requests are %s, and %d wait", refused, q.waiting)
	}
	for _, tenant := range q.tenants {
		if len(tenant.waiting) == 0 {
			t.Errorf("the queue has the tenant %s without a request", tenant.name)
		}
	}
}

// TestQueueCloses: when the queue closes, workers take all waiting requests, including those of a tenant without room
// in its share, and then end.
func TestQueueCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(100, 1)
		var working sync.WaitGroup
		var mu sync.Mutex
		n := 0
		for range 5 {
			working.Go(func() {
				for {
					r, ok := q.take()
					if !ok {
						return
					}
					time.Sleep(time.Second) // the other requests wait for room in the tenant's share
					mu.Lock()
					n++
					mu.Unlock()
					q.done(r)
				}
			})
		}
		synctest.Wait()
		for n := range 10 {
			q.put(ask("a", n))
		}
		q.close()
		working.Wait()
		if n != 10 {
			t.Errorf("workers took %d of 10 requests", n)
		}
	})
}

// TestWorkersByPayload: with a larger max_payload there are fewer workers, so that bodies take no more memory.
func TestWorkersByPayload(t *testing.T) {
	for maxPayload, want := range map[int64]int{0: 64, 1 << 20: 64, 2 << 20: 32, 8 << 20: 8, 64 << 20: 8} {
		if got := oneWorkers(maxPayload); got != want {
			t.Errorf("max_payload %d: got %d workers, want %d", maxPayload, got, want)
		}
	}
}
