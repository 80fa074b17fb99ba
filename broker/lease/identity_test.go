package lease

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/test/natstest"
)

// TestIdentityIsResumed: an instance that starts with the name or at the place of a dead instance takes over when its
// call has had no answer for takeoverTimeout, and immediately if the place is locked.
func TestIdentityIsResumed(t *testing.T) {
	for _, test := range []struct {
		name     string
		identity option
		limit    time.Duration
	}{
		{"name", withName("one"), takeoverTimeout + maxHandover},
		{"address", withPlace("h 127.0.0.1:8422"), takeoverTimeout + maxHandover},
		{"directory", withLockedPlace("h /data"), maxHandover},
	} {
		t.Run(test.name, func(t *testing.T) {
			withStream(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
				a := startPeer(t, s, test.identity)
				time.Sleep(time.Minute)
				a.crash()
				b := startPeer(t, s, test.identity)
				if took := await(t, time.Second, 1, a, b); took > test.limit {
					t.Errorf("resumed after %s, want at most %s", took, test.limit)
				}
			})
		})
	}
}

// TestSameNameStops: if an operator gave two live instances the same name, the younger stops before it is active.
func TestSameNameStops(t *testing.T) {
	withStream(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
		a := startPeer(t, s, withName("one"), withFail(func(err error) { t.Errorf("the elder: %v", err) }))
		time.Sleep(10 * time.Second)
		var failure atomic.Value
		b := startPeer(t, s, withName("one"), withFail(func(err error) { failure.Store(err) }))
		time.Sleep(time.Second)
		if err, _ := failure.Load().(error); !errors.Is(err, ErrNameInUse) {
			t.Errorf("the younger: got %v, want ErrNameInUse", err)
		}
		a.crash()
		checkFor(t, 10*time.Second, -1, a, b)
	})
}

// TestSamePlaceByMistake: two live instances with the same place: the younger stands by, without a place.
func TestSamePlaceByMistake(t *testing.T) {
	withStream(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
		fail := withFail(func(err error) { t.Errorf("stopped by %v", err) })
		a := startPeer(t, s, withPlace("localhost 127.0.0.1:8422"), fail)
		time.Sleep(time.Minute)
		b := startPeer(t, s, withPlace("localhost 127.0.0.1:8422"), fail)
		checkFor(t, time.Minute, 0, a, b)
		checkKept(t, a)
		a.crash()
		await(t, time.Second+maxHandover, 1, a, b)
	})
}
