package lease

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/test/natstest"
)

// outageTime is the duration of an outage. It is longer than every interval of this package: the longest is a minute.
const outageTime = 10 * time.Minute

// outageKind is a way to make the stream of the instances unusable, and usable again.
type outageKind struct {
	begin, end func()
	options    []option // of the peers
}

func outages(t *testing.T, s *natstest.Server, js jetstream.JetStream) map[string]outageKind {
	t.Helper()
	m := &mutableAPI{}
	return map[string]outageKind{
		"full": {begin: func() { setFull(t, js, true) }, end: func() { setFull(t, js, false) }},
		"gone": {
			begin: func() {
				if err := js.DeleteStream(context.Background(), testSubjects.Stream); err != nil {
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
			withStream(t, func(t *testing.T, s *natstest.Server, js jetstream.JetStream) {
				o := outages(t, s, js)[kind]
				f(t, func(n int) *peer { return startPeer(t, s, lanes(n), append(o.options, withKeys)...) }, o.begin, o.end)
			})
		})
	}
}

// TestAloneInOutage: an instance that is alone keeps all its leases during an outage.
func TestAloneInOutage(t *testing.T) {
	natstest.SkipShort(t)
	inOutage(t, func(t *testing.T, start func(n int) *peer, begin, end func()) {
		a := start(4)
		time.Sleep(10 * time.Second)
		leases := leasesOf(a)
		begin()
		checkFor(t, outageTime, "4", a)
		end()
		checkFor(t, time.Minute, "4", a)
		checkKept(t, leases)
	})
}

// TestSeveralInOutage: every instance keeps its leases during an outage, and after it.
func TestSeveralInOutage(t *testing.T) {
	natstest.SkipShort(t)
	inOutage(t, func(t *testing.T, start func(n int) *peer, begin, end func()) {
		a, b := start(6), start(6)
		time.Sleep(10 * time.Second)
		leases := leasesOf(a, b)
		begin()
		checkFor(t, outageTime, "3 3", a, b)
		end()
		checkFor(t, time.Minute, "3 3", a, b)
		checkKept(t, leases)
	})
}

// TestCrashInOutage: if an instance dies after the first 15 s of an outage, its lanes have another owner within
// seconds. After the outage no lane has two owners, and the shares are soon even.
func TestCrashInOutage(t *testing.T) {
	natstest.SkipShort(t)
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

// TestStopInOutage: the lanes of an instance that stops in an outage get another owner. The stop returns no error.
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

// TestStartInOutage: an instance that starts in an outage owns the lanes that no call names, even if the table names a
// dead owner. After the outage, the shares are soon even.
func TestStartInOutage(t *testing.T) {
	inOutage(t, func(t *testing.T, start func(n int) *peer, begin, end func()) {
		a := start(4)
		time.Sleep(10 * time.Second)
		begin()
		a.crash()
		b := start(4)
		awaitHolds(t, outageTimeout+5*time.Second, 4, b)
		c := start(4) // c receives the call of b, and does not take the lanes of b
		time.Sleep(time.Minute)
		checkHolds(t, "4 0", b, c)
		end()
		time.Sleep(20 * time.Second)
		checkFor(t, time.Minute, "2 2", b, c)
	})
}

// TestPurged: after a purge of the stream, every instance keeps its lanes. An instance that joins afterwards gets a
// share, and an instance that dies is replaced in time.
func TestPurged(t *testing.T) {
	for _, alone := range []bool{true, false} {
		withStream(t, func(t *testing.T, s *natstest.Server, js jetstream.JetStream) {
			a := startPeer(t, s, lanes(6), withKeys)
			time.Sleep(time.Minute)
			peers, want := []*peer{a}, "6"
			if !alone {
				peers, want = append(peers, startPeer(t, s, lanes(6), withKeys)), "3 3"
				time.Sleep(10 * time.Second)
			}
			checkHolds(t, want, peers...)
			leases := leasesOf(a)
			st, err := js.Stream(context.Background(), testSubjects.Stream)
			if err != nil {
				t.Fatal(err)
			}
			if err := st.Purge(context.Background()); err != nil {
				t.Fatal(err)
			}
			checkFor(t, time.Minute, want, peers...)
			checkKept(t, leases)
			if list := subjects(t, js); list[testSubjects.Table] != 1 {
				t.Errorf("a minute after the purge, the stream has %v, want a table", list)
			}
			c := startPeer(t, s, lanes(6), withKeys)
			time.Sleep(20 * time.Second)
			a.crash()
			took := awaitHolds(t, 7*time.Second, 6, append(peers[1:], c)...)
			if took > 5500*time.Millisecond+maxHandover {
				t.Errorf("the other instances took over after %s, want at most 5.5s", took)
			}
			checkFor(t, 10*time.Second, map[bool]string{true: "6", false: "3 3"}[alone], append(peers[1:], c)...)
		})
	}
}

// TestStreamDeleted: if the instances may create the stream, they create it again, and every instance keeps its lanes.
// Otherwise, every instance keeps its lanes until and after an operator creates the stream.
func TestStreamDeleted(t *testing.T) {
	natstest.SkipShort(t)
	for _, allowed := range []bool{true, false} {
		withStream(t, func(t *testing.T, s *natstest.Server, js jetstream.JetStream) {
			var options []option
			if allowed {
				options = append(options, withCreate(js))
			}
			a, b := startPeer(t, s, lanes(4), options...), startPeer(t, s, lanes(4), options...)
			time.Sleep(10 * time.Second)
			checkHolds(t, "2 2", a, b)
			leases := leasesOf(a)
			if err := js.DeleteStream(context.Background(), testSubjects.Stream); err != nil {
				t.Fatal(err)
			}
			time.Sleep(13 * time.Second)
			checkHolds(t, "2 2", a, b)
			if !allowed {
				checkFor(t, outageTime, "2 2", a, b)
				if err := makeStream(js); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(20 * time.Second)
			checkHolds(t, "2 2", a, b)
			checkKept(t, leases)
		})
	}
}
