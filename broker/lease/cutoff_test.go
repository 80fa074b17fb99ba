package lease

import (
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/test/natstest"
)

// TestServerAway: while the server is down, no owner acts after its grace has ended, and no owner is replaced. When the
// server is up again, every owner continues with its leases.
func TestServerAway(t *testing.T) {
	withStream(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
		a, b := startPeer(t, s, lanes(4)), startPeer(t, s, lanes(4))
		time.Sleep(10 * time.Second)
		checkHolds(t, "2 2", a, b)
		leases := leasesOf(a)
		s.Stop()
		time.Sleep(6 * time.Second)
		checkHolds(t, "0 0", a, b)
		time.Sleep(time.Minute)
		s.Start()
		time.Sleep(500 * time.Millisecond)
		checkHolds(t, "2 2", a, b)
		checkKept(t, leases)
	})
}

// gate dials a server. While the gate is shut, its connections are broken and cannot be dialed.
type gate struct {
	*natstest.Server
	mu    sync.Mutex
	shut  bool
	conns []net.Conn
}

func (g *gate) Dial(network, address string) (net.Conn, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut {
		return nil, net.ErrClosed
	}
	c, err := g.Server.Dial(network, address)
	g.conns = append(g.conns, c)
	return c, err
}

func (g *gate) set(shut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = shut
	for _, c := range g.conns {
		if shut && c != nil {
			_ = c.Close() // like a pulled cable
		}
	}
}

func withGate(g *gate) option {
	return func(c *SharedConfig) {
		c.Conn.Close()
		c.Conn = g.Connect(nats.ReconnectBufSize(-1), nats.SetCustomDialer(g))
	}
}

// TestAloneIsCutOff: an instance that was alone and lost its connection, even briefly, reads the table before it
// continues. If another instance has taken over, no lane ever has two owners.
func TestAloneIsCutOff(t *testing.T) {
	withStream(t, func(t *testing.T, s *natstest.Server, js jetstream.JetStream) {
		g := &gate{Server: s}
		a := startPeer(t, s, lanes(4), withGate(g))
		time.Sleep(10 * time.Second)
		lease := a.currentLeases()["L0"]
		sequence := lastSequence(t, js)
		g.set(true)
		time.Sleep(50 * time.Millisecond)
		checkHolds(t, "0", a)
		g.set(false)
		time.Sleep(100 * time.Millisecond)
		checkHolds(t, "4", a)
		if got := lastSequence(t, js) - sequence; got != 1 || a.currentLeases()["L0"] != lease {
			t.Errorf("after 50ms without a connection: %d requests, want 1; the same lease: %t, want true", got,
				a.currentLeases()["L0"] == lease)
		}

		g.set(true)
		b := startPeer(t, s, lanes(4))
		time.Sleep(5*time.Second + maxHandover)
		checkHolds(t, "0 4", a, b)
		g.set(false)
		checkEvery(t, time.Millisecond, 200*time.Millisecond, "0 4", a, b)
		time.Sleep(8 * time.Second)
		checkHolds(t, "2 2", a, b)
	})
}

// TestBackWhileFull: an instance was alone, lost its connection, and finds the stream full. It continues immediately if
// it still owns the lanes in the leader's table.
func TestBackWhileFull(t *testing.T) {
	withStream(t, func(t *testing.T, s *natstest.Server, js jetstream.JetStream) {
		g := &gate{Server: s}
		a := startPeer(t, s, lanes(4), withGate(g), withKeys)
		time.Sleep(10 * time.Second)
		setFull(t, js, true)
		g.set(true)
		time.Sleep(50 * time.Millisecond)
		checkHolds(t, "0", a)
		g.set(false)
		time.Sleep(100 * time.Millisecond)
		checkFor(t, time.Minute, "4", a)
	})
}

// TestAloneIsCutOffUnanswered: an instance that is alone stops immediately if it loses its connection while it waits
// for an answer of the leader. It does not act again until it has read the table.
func TestAloneIsCutOffUnanswered(t *testing.T) {
	for _, cut := range []time.Duration{50 * time.Millisecond, 10 * time.Second} {
		withStream(t, func(t *testing.T, s *natstest.Server, js jetstream.JetStream) {
			g, m := &gate{Server: s}, &mutableAPI{}
			a := startPeer(t, s, lanes(4), withGate(g), m.option(t, s), withKeys)
			time.Sleep(pollInterval - signInterval/2)
			m.Store(true)
			time.Sleep(signInterval)
			checkHolds(t, "4", a)
			sequence := lastSequence(t, js)
			g.set(true)
			time.Sleep(50 * time.Millisecond)
			checkEvery(t, 50*time.Millisecond, cut, "0", a)
			m.Store(false)
			g.set(false)
			time.Sleep(100 * time.Millisecond)
			checkHolds(t, "4", a)
			if got := lastSequence(t, js) - sequence; got != 1 {
				t.Errorf("after %s without a connection: stored %d counters before it continued, want 1", cut, got)
			}
		})
	}
}

// TestFailedOffline: after a failed request, an instance that is alone keeps its grace only if it is connected.
func TestFailedOffline(t *testing.T) {
	withStream(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
		for _, connected := range []bool{true, false} {
			a := NewShared(SharedConfig{Conn: s.Connect(), APIPrefix: "$JS.API", Subjects: testSubjects,
				Connected: func() bool { return connected }, Log: slog.New(slog.DiscardHandler)})
			a.grace.Store(&grace{beatSentAt: a.now(), alone: true})
			a.handleFailure(t.Context(), time.Now(), errStale)
			if got := a.grace.Load().permits(a.now(), connected); got != connected {
				t.Errorf("connected %t: the instance may act: %t, want %t", connected, got, connected)
			}
		}
	})
}

// TestCutOff: of several instances, one loses its connection. It stops before others take over, and gets a share again
// after it has reconnected. No lane ever has two owners.
func TestCutOff(t *testing.T) {
	withStream(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
		g := &gate{Server: s}
		a, b := startPeer(t, s, lanes(4), withGate(g), withKeys), startPeer(t, s, lanes(4), withKeys)
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
		checkEvery(t, time.Millisecond, 100*time.Millisecond, "0 4", a, b)
		time.Sleep(10 * time.Second)
		checkHolds(t, "2 2", a, b)
	})
}

// TestAloneDetectsPeer: an instance that is alone, and stays connected, does not receive the calls of another instance
// that takes over. It reads the table every ten seconds, and immediately after Probe. So two instances own the lanes
// for a bounded time.
func TestAloneDetectsPeer(t *testing.T) {
	for _, probed := range []bool{false, true} {
		for phase := time.Duration(0); phase < pollInterval; phase += 1700 * time.Millisecond {
			withStream(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
				a := startPeer(t, s, lanes(4), withoutCalls)
				time.Sleep(time.Minute + phase)
				b := startPeer(t, s, lanes(4), withoutCalls)
				for start := time.Now(); len(b.holds()) == 0; time.Sleep(time.Millisecond) {
					if time.Since(start) > 2*pollInterval {
						t.Fatal("the other instance takes over no lane")
					}
				}
				limit := pollInterval + signInterval
				if probed {
					a.Probe()
					limit = maxHandover
				}
				for start := time.Now(); len(a.holds())+len(b.holds()) > 4; time.Sleep(time.Millisecond) {
					if time.Since(start) > limit {
						t.Fatalf("lanes have two owners after %s", limit)
					}
				}
				time.Sleep(15 * time.Second)
				checkHolds(t, "2 2", a, b)
			})
		}
	}
}
