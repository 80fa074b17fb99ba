package lease

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/test/natstest"
)

// TestPlaceIsResumed: an instance that starts at the place of a dead instance takes over when its call has had no
// answer for takeoverTimeout, and immediately if the place is locked.
func TestPlaceIsResumed(t *testing.T) {
	for _, test := range []struct {
		name  string
		place option
		limit time.Duration
	}{
		{"address", withPlace("h 127.0.0.1:8422"), takeoverTimeout + maxHandover},
		{"directory", withLockedPlace("h /data"), maxHandover},
	} {
		t.Run(test.name, func(t *testing.T) {
			withStream(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
				a := startPeer(t, s, lanes(4), test.place, withKeys)
				time.Sleep(time.Minute)
				a.crash()
				b := startPeer(t, s, lanes(4), test.place, withKeys)
				if took := awaitHolds(t, time.Second, 4, b); took > test.limit {
					t.Errorf("resumed after %s, want at most %s", took, test.limit)
				}
				other := startPeer(t, s, lanes(4), test.place, withKeys)
				other.crash()
			})
		})
	}
}

// TestSameNameStops: if an operator gave two live instances the same name, the younger stops before it owns a lane.
func TestSameNameStops(t *testing.T) {
	for _, alone := range []bool{true, false} {
		withStream(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
			elderFailed := func(err error) { t.Errorf("the elder: %v", err) }
			a := startPeer(t, s, lanes(4), withName("one"), withKeys, withFail(elderFailed))
			others := []*peer{}
			if !alone {
				others = append(others, startPeer(t, s, lanes(4), withKeys))
			}
			time.Sleep(10 * time.Second)
			leases := leasesOf(a)
			var failure atomic.Value
			b := startPeer(t, s, lanes(4), withName("one"), withKeys, withFail(func(err error) { failure.Store(err) }))
			time.Sleep(time.Second)
			if err, _ := failure.Load().(error); !errors.Is(err, ErrNameInUse) {
				t.Errorf("the younger: got %v, want ErrNameInUse", err)
			}
			checkHolds(t, "0", b)
			checkKept(t, leases)
			b.stop()
			checkFor(t, time.Minute, map[bool]string{true: "4", false: "2 2"}[alone], append([]*peer{a}, others...)...)
		})
	}
}

// TestSameNameWithoutCalls: two live instances with the same name do not receive each other's calls, so the younger
// takes over. They detect each other by the table, and one of them stops.
func TestSameNameWithoutCalls(t *testing.T) {
	withStream(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
		a := startPeer(t, s, lanes(4), withName("one"), withoutCalls, withKeys)
		time.Sleep(time.Minute + pollInterval/2)
		stopped := make(chan error, 1)
		b := startPeer(t, s, lanes(4), withName("one"), withoutCalls, withKeys, withFail(func(err error) { stopped <- err }))
		awaitHolds(t, time.Second, 4, b)
		select {
		case <-stopped:
		case <-time.After(pollInterval + 2*signInterval):
			t.Fatal("no instance stops")
		}
		b.stop()
		time.Sleep(readInterval + maxHandover) // the call of the stopped instance does not arrive either
		checkFor(t, time.Minute, "4", a)
	})
}

// TestSamePlaceByMistake: two live instances with the same place share the lanes evenly.
func TestSamePlaceByMistake(t *testing.T) {
	withStream(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
		fail := withFail(func(err error) { t.Errorf("stopped by %v", err) })
		a := startPeer(t, s, lanes(4), withPlace("localhost 127.0.0.1:8422"), fail)
		time.Sleep(time.Minute)
		count := len(a.currentLeases())
		b := startPeer(t, s, lanes(4), withPlace("localhost 127.0.0.1:8422"), fail)
		for range 4 {
			time.Sleep(time.Second)
			checkHolds(t, "4 0", a, b)
		}
		time.Sleep(10 * time.Second)
		checkHolds(t, "2 2", a, b)
		if count != 4 {
			t.Errorf("alone, the elder owned %d lanes, want 4", count)
		}
		a.crash()
		awaitHolds(t, 6*time.Second, 4, b)
	})
}

// TestNameIsResumed: an instance takes over from an earlier run with its name that has not answered for
// takeoverTimeout.
func TestNameIsResumed(t *testing.T) {
	withStream(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
		a := startPeer(t, s, lanes(4), withName("one"))
		time.Sleep(time.Minute)
		a.crash()
		b := startPeer(t, s, lanes(4), withName("one"))
		time.Sleep(takeoverTimeout - time.Millisecond)
		checkHolds(t, "0", b)
		time.Sleep(maxHandover)
		checkHolds(t, "4", b)
	})
}
