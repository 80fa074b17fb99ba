package service

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestTurns: tenants are served in turn, each in the order of its requests, and none has more than its share at the
// same time.
func TestTurns(t *testing.T) {
	q := NewQueue[string](100, 2)
	put := func(tenant string, n int) { q.Put(tenant, "", fmt.Sprint(tenant, n)) }
	for n := range 4 {
		put("a", n)
	}
	put("b", 0)
	put("c", 0)
	var got []string
	var ends []func()
	take := func() {
		p, of := q.take()
		if of == nil {
			t.Fatal("the queue is closed")
		}
		ends, got = append(ends, func() { q.done(p, of) }), append(got, p.request)
	}
	for range 4 {
		take()
	}
	if len(q.turns) > 0 {
		t.Errorf("%s has a turn, and no room in its share", q.turns[0].name)
	}
	put("b", 1)
	ends[0]()
	take()
	take()
	if got := strings.Join(got, " "); got != "a0 b0 c0 a1 b1 a2" {
		t.Errorf("the requests are taken in the order %s", got)
	}
	ends[3]()
	take()
	for _, end := range append(ends[1:3], ends[4:]...) {
		end()
	}
	if q.waiting > 0 || len(q.tenants) > 0 || len(q.turns) > 0 {
		t.Errorf("after the last request, %d requests wait, and %d tenants are left", q.waiting, len(q.tenants))
	}
}

// TestFullQueue: when the queue is full, the tenant with the most requests loses its last one. A tenant that has fewer
// always finds room.
func TestFullQueue(t *testing.T) {
	q := NewQueue[string](6, 1)
	var refused []string
	put := func(tenant string, n int) {
		if r, full := q.Put(tenant, "", fmt.Sprint(tenant, n)); full {
			refused = append(refused, r)
		}
	}
	for n := range 8 {
		put("a", n)
	}
	put("b", 0)
	put("b", 1)
	put("c", 0)
	put("c", 1)
	if got := strings.Join(refused, " "); got != "a6 a7 a5 a4 a3 a2" {
		t.Errorf("the refused requests are %s", got)
	}
	for n := 2; n < 5; n++ { // now all tenants have the same number
		put("b", n)
	}
	if got := strings.Join(refused[6:], " "); got != "b2 b3 b4" {
		t.Errorf("with equally many requests of each tenant, the refused requests are %s", got)
	}
	put("d", 0)
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
		q := NewQueue[int](100, 1)
		var working sync.WaitGroup
		var n atomic.Int32
		for range 5 {
			working.Go(func() {
				q.Work(func(int) {
					time.Sleep(time.Second) // the other requests wait for room in the tenant's share
					n.Add(1)
				})
			})
		}
		synctest.Wait()
		for n := range 10 {
			q.Put("a", "", n)
		}
		q.Close()
		working.Wait()
		if n := n.Load(); n != 10 {
			t.Errorf("workers took %d of 10 requests", n)
		}
	})
}

// TestRequestsAboutOneObject: requests about an object are carried out one after the other, in order. A slow one delays
// no request about another object, even if all requests about its object came first.
func TestRequestsAboutOneObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, began := NewQueue[string](100, 3), time.Now()
		var mu sync.Mutex
		var got []string
		var working sync.WaitGroup
		for range 4 {
			working.Go(func() {
				q.Work(func(r string) {
					if strings.HasPrefix(r, "slow") {
						time.Sleep(4 * time.Second)
					}
					mu.Lock()
					defer mu.Unlock()
					got = append(got, fmt.Sprint(r, "@", time.Since(began)))
				})
			})
		}
		for n := range 3 {
			q.Put("a", "slow", fmt.Sprint("slow", n))
		}
		for n := range 2 {
			synctest.Wait()
			q.Put("a", "quick", fmt.Sprint("quick", n))
		}
		synctest.Wait()
		q.Close()
		working.Wait()
		if got, want := strings.Join(got, " "), "quick0@0s quick1@0s slow0@4s slow1@8s slow2@12s"; got != want {
			t.Errorf("the requests ended in the order %s, want %s", got, want)
		}
	})
}

// TestLastRequestThatMayBeginIsRefused: a tenant's turn was for a request that lost its place in the full queue. The
// tenant's other request waits for the end of one about the same object.
func TestLastRequestThatMayBeginIsRefused(t *testing.T) {
	q := NewQueue[string](2, 3)
	q.Put("a", "x", "a0")
	first, a := q.take()
	q.Put("a", "x", "a1")
	q.Put("a", "y", "a2")
	if refused, full := q.Put("b", "", "b0"); !full || refused != "a2" {
		t.Fatalf("the refused request is %q, want a2", refused)
	}
	if p, _ := q.take(); p.request != "b0" {
		t.Errorf("the next request is %s, want b0", p.request)
	}
	q.done(first, a)
	if p, _ := q.take(); p.request != "a1" {
		t.Errorf("the last request is %s, want a1", p.request)
	}
}

// TestWorkersByPayload: with a larger max_payload there are fewer workers, so that bodies take no more memory.
func TestWorkersByPayload(t *testing.T) {
	for maxPayload, want := range map[int64]int{0: 64, 1 << 20: 64, 2 << 20: 32, 8 << 20: 8, 64 << 20: 8} {
		if got := oneWorkers(maxPayload); got != want {
			t.Errorf("max_payload %d: got %d workers, want %d", maxPayload, got, want)
		}
	}
}
