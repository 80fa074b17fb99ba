package lease

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/test/natstest"
)

// TestConformFreeLane: a free lane is granted immediately, and onStandby is not called. The lease is held, and begins
// at the stream's first message. Owner returns the owner if the instances communicate.
func TestConformFreeLane(t *testing.T) {
	conform(t, func(t *testing.T, k kind) {
		l, _ := k.start("L", "M")
		start := time.Now()
		got, err := l.Acquire(t.Context(), "L", func() { t.Error("onStandby was called for a free lane") })
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("acquired after %s, want immediately", took)
		}
		if !got.Held() || isDone(got) || got.Cursor() != (Cursor{}) {
			t.Errorf("held %t, done %t, cursor %+v; want true, false and the zero cursor", got.Held(), isDone(got),
				got.Cursor())
		}
		want := ""
		if k.shared {
			want = l.(*Shared).Instance()
		}
		if owner := l.Owner("L"); owner != want {
			t.Errorf("owned by %q, want %q", owner, want)
		}
		if owner := l.Owner("M"); owner != "" {
			t.Errorf("a free lane is owned by %q", owner)
		}
	})
}

// TestConformLaneOfAnother: if another instance owns the lane, Acquire calls onStandby once, and returns the error of
// its context when the context ends.
func TestConformLaneOfAnother(t *testing.T) {
	conform(t, func(t *testing.T, k kind) {
		a, _ := k.start("L")
		got := acquire(t, a, "L", time.Minute)
		receiveTicks(t, got)
		b, _ := k.start("M")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start, calls := time.Now(), 0
		_, err := b.Acquire(ctx, "L", func() { calls++ })
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Minute {
			t.Errorf("ended with %v after %s, want the context's error after 1m", err, time.Since(start))
		}
		if calls != 1 {
			t.Errorf("onStandby was called %d times, want once", calls)
		}
		if !got.Held() || isDone(got) {
			t.Errorf("the owner's lease: held %t, done %t; want true, false", got.Held(), isDone(got))
		}
	})
}

// TestConformWithoutRun: without Run, a leaser grants no lane that another instance might own. Acquire returns the
// error of its context, and Owner and Probe do not block.
func TestConformWithoutRun(t *testing.T) {
	check := func(t *testing.T, l Leaser) {
		l.Probe()
		l.Probe()
		if owner := l.Owner("L"); owner != "" {
			t.Errorf("L is owned by %q", owner)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		start := time.Now()
		_, err := l.Acquire(ctx, "L", func() {})
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Hour {
			t.Errorf("ended with %v after %s, want the context's error after 1h", err, time.Since(start))
		}
	}
	t.Run("Static", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { check(t, Static{Lanes: []string{"M"}}) })
	})
	t.Run("Shared", func(t *testing.T) {
		withStream(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
			check(t, NewShared(conformConfig(t, s)))
		})
	})
}

// TestConformRelease: another instance can acquire a released lane immediately. If the instances communicate, the new
// lease begins at the cursor of the release. A second release of a lease changes nothing.
func TestConformRelease(t *testing.T) {
	conform(t, func(t *testing.T, k kind) {
		a, _ := k.start("L")
		b, _ := k.start("L")
		first := acquire(t, a, "L", time.Minute)
		receiveTicks(t, first)
		cursor := Cursor{Next: 4711, Created: time.Now().UTC()}
		next := make(chan Lease, 1)
		if k.shared { // the other instance already waits
			go func() { next <- acquire(t, b, "L", time.Hour) }()
			time.Sleep(20 * time.Second)
			if len(next) > 0 {
				t.Fatal("two instances own the lane")
			}
		}
		start := time.Now()
		for range 2 {
			if err := first.Release(t.Context(), cursor); err != nil {
				t.Errorf("release: %v", err)
			}
		}
		if !k.shared {
			next <- acquire(t, b, "L", time.Minute)
		}
		second := <-next
		if took := time.Since(start); took > roundPause {
			t.Errorf("the next owner has the lane after %s, want at most %s", took, roundPause)
		}
		want := Cursor{}
		if k.shared {
			want = cursor
		}
		if got := second.Cursor(); got.Next != want.Next || !got.Created.Equal(want.Created) {
			t.Errorf("the next owner begins at %+v, want %+v", got, want)
		}
		if !second.Held() || isDone(second) || k.shared && first.Held() {
			t.Errorf("first held %t, second held %t, done %t", first.Held(), second.Held(), isDone(second))
		}
	})
}

// TestConformStop: after its leases are released, a leaser stops immediately, and another leaser can acquire the lanes.
// The lanes are acquired and released concurrently, as by the workers of a broker.
func TestConformStop(t *testing.T) {
	conform(t, func(t *testing.T, k kind) {
		var names []string
		for n := range 24 {
			names = append(names, fmt.Sprint("L", n))
		}
		a, stop := k.start(names...)
		acquireAll := func(l Leaser) []Lease {
			leases := make([]Lease, len(names))
			var workers sync.WaitGroup
			for n, lane := range names {
				workers.Go(func() { leases[n] = acquire(t, l, lane, time.Minute) })
			}
			workers.Wait()
			return leases
		}
		var workers sync.WaitGroup
		for _, l := range acquireAll(a) {
			workers.Go(func() {
				if err := l.Release(t.Context(), Cursor{Next: 7}); err != nil {
					t.Errorf("release: %v", err)
				}
			})
		}
		start := time.Now()
		workers.Wait()
		stop()
		if took := time.Since(start); took > 4*roundPause {
			t.Errorf("stopped after %s, want at most %s", took, 4*roundPause)
		}
		b, _ := k.start(names...)
		start = time.Now()
		for n, l := range acquireAll(b) {
			if !l.Held() {
				t.Errorf("%s is not held", names[n])
			}
		}
		if took := time.Since(start); took > 4*roundPause {
			t.Errorf("the next instance owns all lanes after %s, want at most %s", took, 4*roundPause)
		}
	})
}

// TestConformTicks: Ticks has a value once a second while there are other instances. A stuck worker loses its lane:
// Held returns false 5 s after the first tick that the worker did not receive, and Done is closed. If no instance can
// take over, Ticks is nil, and the lease does not end.
func TestConformTicks(t *testing.T) {
	conform(t, func(t *testing.T, k kind) {
		a, _ := k.start("L")
		l := acquire(t, a, "L", time.Minute)
		k.start("M") // another instance
		if !k.shared {
			time.Sleep(time.Hour)
			if l.Ticks() != nil || !l.Held() || isDone(l) {
				t.Errorf("ticks %t, held %t, done %t; want false, true, false", l.Ticks() != nil, l.Held(), isDone(l))
			}
			return
		}
		<-l.Ticks()
		for range 10 {
			last := time.Now()
			if _, open := <-l.Ticks(); !open || time.Since(last) != beatInterval {
				t.Errorf("the next tick came after %s, open: %t; want %s", time.Since(last), open, beatInterval)
			}
		}
		received := time.Now()
		for l.Held() {
			time.Sleep(time.Millisecond)
		}
		if got := time.Since(received); got != beatInterval+livenessTimeout {
			t.Errorf("held for %s after the worker received its last tick, want %s", got, beatInterval+livenessTimeout)
		}
		<-l.Done()
		if got := time.Since(received); got > beatInterval+livenessTimeout+beatInterval {
			t.Errorf("done after %s, want %s", got, beatInterval+livenessTimeout+beatInterval)
		}
		if l.Held() {
			t.Error("the lease is held after its end")
		}
		start := time.Now()
		if err := l.Release(t.Context(), Cursor{Next: 9}); err != nil || time.Since(start) != 0 {
			t.Errorf("release after the end of the lease: %v after %s, want nil immediately", err, time.Since(start))
		}
	})
}
