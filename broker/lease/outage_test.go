package lease

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/test/natstest"
)

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
		checkFor(t, time.Hour, "4", a)
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
		checkFor(t, time.Hour, "3 3", a, b)
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
		checkFor(t, 10*time.Minute, "3 3", b, c)
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

// TestBackWhileFull: an instance that was alone and cut off, and finds the stream full, goes on at once if the lanes
// are still its own in the leader's table.
func TestBackWhileFull(t *testing.T) {
	meet(t, func(t *testing.T, s *natstest.Server, js jetstream.JetStream) {
		g := &gate{Server: s}
		a := startPeer(t, s, lanes(4), through(g), sealed)
		time.Sleep(10 * time.Second)
		bound(t, js, true)
		g.set(true)
		time.Sleep(50 * time.Millisecond)
		checkHolds(t, "0", a)
		g.set(false)
		time.Sleep(100 * time.Millisecond)
		checkFor(t, time.Minute, "4", a)
	})
}

// TestAloneIsCutOffUnanswered: an instance that is alone stops at once if it loses its connection while its request to
// the leader is open. It acts again neither when the request fails, nor when the connection is back, before it has read
// the table.
func TestAloneIsCutOffUnanswered(t *testing.T) {
	for _, away := range []time.Duration{50 * time.Millisecond, 10 * time.Second} {
		meet(t, func(t *testing.T, s *natstest.Server, js jetstream.JetStream) {
			g, m := &gate{Server: s}, &muted{}
			a := startPeer(t, s, lanes(4), through(g), m.option(t, s), sealed)
			time.Sleep(pollEvery - signEvery/2)
			m.Store(true)
			time.Sleep(signEvery)
			checkHolds(t, "4", a)
			before := lastSequence(t, js)
			g.set(true)
			for range away / (50 * time.Millisecond) {
				time.Sleep(50 * time.Millisecond)
				checkHolds(t, "0", a)
			}
			m.Store(false)
			g.set(false)
			time.Sleep(100 * time.Millisecond)
			checkHolds(t, "4", a)
			if got := lastSequence(t, js) - before; got != 1 {
				t.Errorf("away for %s: it stored %d counters before it went on, want 1", away, got)
			}
		})
	}
}

// TestFailedOffline: a request that fails because the connection is gone gives an instance that is alone no grace.
func TestFailedOffline(t *testing.T) {
	meet(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
		for _, connected := range []bool{true, false} {
			a := NewShared(SharedConfig{Conn: s.Connect(), APIPrefix: "$JS.API", Subjects: meeting,
				Connected: func() bool { return connected }, Log: slog.New(slog.DiscardHandler)})
			a.grace.Store(&grace{since: a.now(), alone: true})
			a.failed(t.Context(), time.Now(), errStale)
			if got := a.grace.Load().holds(a.now(), connected); got != connected {
				t.Errorf("connected: %t: it may act: %t", connected, got)
			}
		}
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

// TestCutOff: one of several instances that is cut off stops before others take over, and has a share again when it is
// back. At no time are there two owners.
func TestCutOff(t *testing.T) {
	meet(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
		g := &gate{Server: s}
		a, b := startPeer(t, s, lanes(4), through(g), sealed), startPeer(t, s, lanes(4), sealed)
		time.Sleep(10 * time.Second)
		checkHolds(t, "2 2", a, b)
		g.set(true)
		for range 600 {
			time.Sleep(10 * time.Millisecond)
			for _, lane := range a.holds() {
				if b.Owner(lane) == b.Instance() {
					t.Fatalf("%s has two owners", lane)
				}
			}
		}
		checkHolds(t, "0 4", a, b)
		time.Sleep(time.Minute)
		g.set(false)
		for range 100 {
			time.Sleep(time.Millisecond)
			checkHolds(t, "0 4", a, b)
		}
		time.Sleep(10 * time.Second)
		checkHolds(t, "2 2", a, b)
	})
}

// TestAloneFindsOut: an instance that is alone, and does not receive the calls of one that takes over although its
// connection never broke, reads the table every ten seconds, and at once when Probe reports that JetStream was away.
func TestAloneFindsOut(t *testing.T) {
	for _, told := range []bool{false, true} {
		for phase := time.Duration(0); phase < pollEvery; phase += 1700 * time.Millisecond {
			meet(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
				a := startPeer(t, s, lanes(4), deaf)
				time.Sleep(time.Minute + phase)
				b := startPeer(t, s, lanes(4), deaf)
				for begun := time.Now(); len(b.holds()) == 0; time.Sleep(time.Millisecond) {
					if time.Since(begun) > 2*pollEvery {
						t.Fatal("the other takes nothing over")
					}
				}
				most := pollEvery + signEvery
				if told {
					a.Probe()
					most = settle
				}
				for begun := time.Now(); len(a.holds())+len(b.holds()) > 4; time.Sleep(time.Millisecond) {
					if time.Since(begun) > most {
						t.Fatalf("there are two owners after %s", most)
					}
				}
				time.Sleep(15 * time.Second)
				checkHolds(t, "2 2", a, b)
			})
		}
	}
}

// TestDeniedIsToldWhenHeld: a worker for which Held returned false gets a beat when it is true again, even if the time
// between was so short that the instance itself did not notice.
func TestDeniedIsToldWhenHeld(t *testing.T) {
	meet(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
		a := startPeer(t, s, nil)
		lease, err := a.Acquire(t.Context(), "L", func() {})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		for len(lease.Beats()) > 0 {
			<-lease.Beats()
		}
		trusted := a.grace.Load()
		a.grace.Store(&grace{since: a.at(time.Now().Add(-signTrust)), alone: true})
		if lease.Held() {
			t.Fatal("held without a sign of life")
		}
		a.grace.Store(trusted) // renewed before anybody called Held
		time.Sleep(settle)
		select {
		case <-lease.Beats():
		default:
			t.Error("it is held, and nobody says so")
		}
		if !lease.Held() {
			t.Error("it is not held")
		}
	})
}
