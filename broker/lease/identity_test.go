package lease

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/test/natstest"
)

// TestPlaceIsResumed: an instance that starts at the place of a dead one takes over as soon as a call has no answer,
// and immediately if the place is locked.
func TestPlaceIsResumed(t *testing.T) {
	for _, test := range []struct {
		name  string
		place option
		most  time.Duration
	}{{"address", at("h 127.0.0.1:8422"), takeoverAfter + settle}, {"directory", locked("h /data"), settle}} {
		t.Run(test.name, func(t *testing.T) {
			meet(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
				a := startPeer(t, s, lanes(4), test.place, sealed)
				time.Sleep(time.Minute)
				a.crash()
				b := startPeer(t, s, lanes(4), test.place, sealed)
				if took := awaitHolds(t, time.Second, 4, b); took > test.most {
					t.Errorf("resumed after %s, want %s", took, test.most)
				}
				other := startPeer(t, s, lanes(4), test.place, sealed)
				other.crash()
			})
		})
	}
}

// TestSameNameStops: if two live instances have one name from an operator, the younger stops before it owns a lane.
func TestSameNameStops(t *testing.T) {
	for _, alone := range []bool{true, false} {
		meet(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
			a := startPeer(t, s, lanes(4), named("one"), sealed, failing(func(err error) { t.Errorf("the elder: %v", err) }))
			others := []*peer{}
			if !alone {
				others = append(others, startPeer(t, s, lanes(4), sealed))
			}
			time.Sleep(10 * time.Second)
			had := a.all()
			var why atomic.Value
			b := startPeer(t, s, lanes(4), named("one"), sealed, failing(func(err error) { why.Store(err) }))
			time.Sleep(time.Second)
			if err, _ := why.Load().(error); !errors.Is(err, ErrNameInUse) {
				t.Errorf("the younger: got %v, want ErrNameInUse", err)
			}
			checkHolds(t, "0", b)
			checkStays(t, had, a)
			b.stop()
			checkFor(t, time.Minute, map[bool]string{true: "4", false: "2 2"}[alone], append([]*peer{a}, others...)...)
		})
	}
}

// TestSameNameWithoutCalls: two live instances with one name did not receive each other's calls, so the younger took
// over. They detect it, and one is left.
func TestSameNameWithoutCalls(t *testing.T) {
	meet(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
		a := startPeer(t, s, lanes(4), named("one"), deaf, sealed)
		time.Sleep(time.Minute + pollInterval/2)
		stopped := make(chan error, 1)
		b := startPeer(t, s, lanes(4), named("one"), deaf, sealed, failing(func(err error) { stopped <- err }))
		awaitHolds(t, time.Second, 4, b)
		select {
		case <-stopped:
		case <-time.After(pollInterval + 2*signInterval):
			t.Fatal("no instance stops")
		}
		b.stop()
		time.Sleep(readInterval + settle) // nor does that call arrive
		checkFor(t, time.Minute, "4", a)
	})
}

// TestSamePlaceByMistake: two live instances with the same place share the lanes like any others.
func TestSamePlaceByMistake(t *testing.T) {
	meet(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
		fail := failing(func(err error) { t.Errorf("stopped by %v", err) })
		a := startPeer(t, s, lanes(4), at("localhost 127.0.0.1:8422"), fail)
		time.Sleep(time.Minute)
		had := len(a.all())
		b := startPeer(t, s, lanes(4), at("localhost 127.0.0.1:8422"), fail)
		for range 4 {
			time.Sleep(time.Second)
			checkHolds(t, "4 0", a, b)
		}
		time.Sleep(10 * time.Second)
		checkHolds(t, "2 2", a, b)
		if had != 4 {
			t.Errorf("alone it had %d lanes", had)
		}
		a.crash()
		awaitHolds(t, 6*time.Second, 4, b)
	})
}

// TestNameIsResumed: an instance with a name resumes as soon as its earlier run did not answer.
func TestNameIsResumed(t *testing.T) {
	meet(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
		a := startPeer(t, s, lanes(4), named("one"))
		time.Sleep(time.Minute)
		a.crash()
		b := startPeer(t, s, lanes(4), named("one"))
		time.Sleep(takeoverAfter - time.Millisecond)
		checkHolds(t, "0", b)
		time.Sleep(settle)
		checkHolds(t, "4", b)
	})
}
