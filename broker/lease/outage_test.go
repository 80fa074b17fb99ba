package lease

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/test/natstest"
)

// outageTime is the length of an outage: longer than all periods of this package, the longest of which is a minute.
const outageTime = 10 * time.Minute

// outages returns ways to make the stream of the instances unusable, and usable again.
func outages(t *testing.T, s *natstest.Server, js jetstream.JetStream) map[string]struct {
	begin, end func()
	options    []option
} {
	t.Helper()
	m := &muted{}
	return map[string]struct {
		begin, end func()
		options    []option
	}{
		"full": {begin: func() { bound(t, js, true) }, end: func() { bound(t, js, false) }},
		"gone": {
			begin: func() {
				if err := js.DeleteStream(context.Background(), meeting.Stream); err != nil {
					t.Fatal(err)
				}
			},
			end: func() {
				if err := makeStream(js); err != nil {
					t.Fatal(err)
				}
			},
		},
		"silent": {begin: func() { m.Store(true) }, end: func() { m.Store(false) }, options: []option{m.option(t, s)}},
	}
}

// inOutage runs f for each kind of outage.
func inOutage(t *testing.T, f func(t *testing.T, start func(n int) *peer, begin, end func())) {
	for _, kind := range []string{"full", "gone", "silent"} {
		t.Run(kind, func(t *testing.T) {
			meet(t, func(t *testing.T, s *natstest.Server, js jetstream.JetStream) {
				o := outages(t, s, js)[kind]
				f(t, func(n int) *peer { return startPeer(t, s, lanes(n), append(o.options, sealed)...) }, o.begin, o.end)
			})
		})
	}
}

// TestAloneInOutage: an instance that is alone keeps all its leases during an outage.
func TestAloneInOutage(t *testing.T) {
	natstest.Long(t)
	inOutage(t, func(t *testing.T, start func(n int) *peer, begin, end func()) {
		a := start(4)
		time.Sleep(10 * time.Second)
		had := a.all()
		begin()
		checkFor(t, outageTime, "4", a)
		end()
		checkFor(t, time.Minute, "4", a)
		checkStays(t, had, a)
	})
}

// TestSeveralInOutage: every instance keeps its leases during an outage, and after it.
func TestSeveralInOutage(t *testing.T) {
	natstest.Long(t)
	inOutage(t, func(t *testing.T, start func(n int) *peer, begin, end func()) {
		a, b := start(6), start(6)
		time.Sleep(10 * time.Second)
		hadA, hadB := a.all(), b.all()
		begin()
		checkFor(t, outageTime, "3 3", a, b)
		end()
		checkFor(t, time.Minute, "3 3", a, b)
		checkStays(t, hadA, a)
		checkStays(t, hadB, b)
	})
}

// TestCrashInOutage: if an instance dies in an outage, its lanes have an owner within seconds once the outage has
// lasted 15 s. After the outage no lane has two owners, and the shares are soon even.
func TestCrashInOutage(t *testing.T) {
	natstest.Long(t)
	inOutage(t, func(t *testing.T, start func(n int) *peer, begin, end func()) {
		a, b, c := start(6), start(6), start(6)
		time.Sleep(20 * time.Second)
		checkHolds(t, "2 2 2", a, b, c)
		begin()
		time.Sleep(time.Minute)
		a.crash()
		awaitHolds(t, 12*time.Second, 6, b, c)
		time.Sleep(time.Second)
		checkFor(t, outageTime, "3 3", b, c)
		end()
		checkFor(t, time.Minute, "3 3", b, c)
	})
}

// TestStopInOutage: the lanes of an instance that stops in an outage go to others. The stop returns no error.
func TestStopInOutage(t *testing.T) {
	inOutage(t, func(t *testing.T, start func(n int) *peer, begin, end func()) {
		a, b := start(4), start(4)
		time.Sleep(10 * time.Second)
		begin()
		time.Sleep(time.Minute)
		a.stop()
		awaitHolds(t, 12*time.Second, 4, b)
		end()
		checkFor(t, time.Minute, "4", b)
	})
}

// TestStartInOutage: an instance that starts in an outage, without calls from others, owns the lanes that no call
// names, even if a table names a dead owner. It shares when calls arrive again.
func TestStartInOutage(t *testing.T) {
	inOutage(t, func(t *testing.T, start func(n int) *peer, begin, end func()) {
		a := start(4)
		time.Sleep(10 * time.Second)
		begin()
		a.crash()
		b := start(4)
		awaitHolds(t, silentAfter+5*time.Second, 4, b)
		c := start(4) // it receives a call, and does not take the lanes in it
		time.Sleep(time.Minute)
		checkHolds(t, "4 0", b, c)
		end()
		time.Sleep(20 * time.Second)
		checkFor(t, time.Minute, "2 2", b, c)
	})
}

// TestPurged: a purge of the stream changes nothing. An instance that dies afterwards is replaced in time, and one that
// joins gets a share.
func TestPurged(t *testing.T) {
	for _, alone := range []bool{true, false} {
		meet(t, func(t *testing.T, s *natstest.Server, js jetstream.JetStream) {
			a := startPeer(t, s, lanes(6), sealed)
			time.Sleep(time.Minute)
			peers, want := []*peer{a}, "6"
			if !alone {
				peers, want = append(peers, startPeer(t, s, lanes(6), sealed)), "3 3"
				time.Sleep(10 * time.Second)
			}
			checkHolds(t, want, peers...)
			had := a.all()
			st, err := js.Stream(context.Background(), meeting.Stream)
			if err != nil {
				t.Fatal(err)
			}
			if err := st.Purge(context.Background()); err != nil {
				t.Fatal(err)
			}
			checkFor(t, time.Minute, want, peers...)
			checkStays(t, had, a)
			if list := subjects(t, js); list[meeting.Table] != 1 {
				t.Errorf("a minute later the stream has %v, and no table", list)
			}
			c := startPeer(t, s, lanes(6), sealed)
			time.Sleep(20 * time.Second)
			a.crash()
			took := awaitHolds(t, 7*time.Second, 6, append(peers[1:], c)...)
			if took > 5500*time.Millisecond+settle {
				t.Errorf("taken over after %s", took)
			}
			checkFor(t, 10*time.Second, map[bool]string{true: "6", false: "3 3"}[alone], append(peers[1:], c)...)
		})
	}
}

// TestStreamDeleted: an instance that may create the stream creates it again, and every instance keeps its lanes.
// Without the permission, owners keep their lanes, also after an operator has created the stream.
func TestStreamDeleted(t *testing.T) {
	natstest.Long(t)
	for _, may := range []bool{true, false} {
		meet(t, func(t *testing.T, s *natstest.Server, js jetstream.JetStream) {
			var options []option
			if may {
				options = append(options, creating(js))
			}
			a, b := startPeer(t, s, lanes(4), options...), startPeer(t, s, lanes(4), options...)
			time.Sleep(10 * time.Second)
			checkHolds(t, "2 2", a, b)
			had := a.all()
			if err := js.DeleteStream(context.Background(), meeting.Stream); err != nil {
				t.Fatal(err)
			}
			time.Sleep(13 * time.Second)
			checkHolds(t, "2 2", a, b)
			if !may {
				checkFor(t, outageTime, "2 2", a, b)
				if err := makeStream(js); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(20 * time.Second)
			checkHolds(t, "2 2", a, b)
			if !maps.Equal(had, a.all()) {
				t.Error("the leases have changed")
			}
		})
	}
}
