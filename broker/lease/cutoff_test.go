package lease

import (
	"log/slog"
	"maps"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/test/natstest"
)

// TestServerAway: while the server is away, no owner acts beyond its grace, and none is replaced. When it is back,
// every owner goes on with its lease.
func TestServerAway(t *testing.T) {
	meet(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
		a, b := startPeer(t, s, lanes(4)), startPeer(t, s, lanes(4))
		time.Sleep(10 * time.Second)
		checkHolds(t, "2 2", a, b)
		had := a.all()
		s.Stop()
		time.Sleep(6 * time.Second)
		checkHolds(t, "0 0", a, b)
		time.Sleep(time.Minute)
		s.Start()
		time.Sleep(500 * time.Millisecond)
		checkHolds(t, "2 2", a, b)
		if !maps.Equal(had, a.all()) {
			t.Error("the leases have changed")
		}
	})
}

// gate is a proxy to a server that can be closed.
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

func through(g *gate) option {
	return func(c *SharedConfig) {
		c.Conn.Close()
		c.Conn = g.Connect(nats.ReconnectBufSize(-1), nats.SetCustomDialer(g))
	}
}

// TestAloneIsCutOff: an instance that was alone and cut off, however briefly, reads the table before it continues. If
// another instance has taken over meanwhile, the two never hold a lane at the same time.
func TestAloneIsCutOff(t *testing.T) {
	meet(t, func(t *testing.T, s *natstest.Server, js jetstream.JetStream) {
		g := &gate{Server: s}
		a := startPeer(t, s, lanes(4), through(g))
		time.Sleep(10 * time.Second)
		lease := a.all()["L0"]
		before := lastSequence(t, js)
		g.set(true)
		time.Sleep(50 * time.Millisecond)
		checkHolds(t, "0", a)
		g.set(false)
		time.Sleep(100 * time.Millisecond)
		checkHolds(t, "4", a)
		if got := lastSequence(t, js) - before; got != 1 || a.all()["L0"] != lease {
			t.Errorf("after 50ms without a connection: %d requests, want 1; the same lease: %t", got,
				a.all()["L0"] == lease)
		}

		g.set(true)
		b := startPeer(t, s, lanes(4))
		time.Sleep(5*time.Second + settle)
		checkHolds(t, "0 4", a, b)
		g.set(false)
		checkEvery(t, time.Millisecond, 200*time.Millisecond, "0 4", a, b)
		time.Sleep(8 * time.Second)
		checkHolds(t, "2 2", a, b)
	})
}

// TestBackWhileFull: an instance that was alone and cut off, and finds the stream full, goes on immediately if the
// lanes are still its own in the leader's table.
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

// TestAloneIsCutOffUnanswered: an instance that is alone stops immediately if it loses its connection while its request
// to the leader is open. It acts again neither when the request fails, nor when the connection is back, before it has
// read the table.
func TestAloneIsCutOffUnanswered(t *testing.T) {
	for _, away := range []time.Duration{50 * time.Millisecond, 10 * time.Second} {
		meet(t, func(t *testing.T, s *natstest.Server, js jetstream.JetStream) {
			g, m := &gate{Server: s}, &muted{}
			a := startPeer(t, s, lanes(4), through(g), m.option(t, s), sealed)
			time.Sleep(pollInterval - signInterval/2)
			m.Store(true)
			time.Sleep(signInterval)
			checkHolds(t, "4", a)
			before := lastSequence(t, js)
			g.set(true)
			time.Sleep(50 * time.Millisecond)
			checkEvery(t, 50*time.Millisecond, away, "0", a)
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
			a.handleFailure(t.Context(), time.Now(), errStale)
			if got := a.grace.Load().permits(a.now(), connected); got != connected {
				t.Errorf("connected: %t: it may act: %t", connected, got)
			}
		}
	})
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
		checkEvery(t, time.Millisecond, 100*time.Millisecond, "0 4", a, b)
		time.Sleep(10 * time.Second)
		checkHolds(t, "2 2", a, b)
	})
}

// TestAloneFindsOut: an instance that is alone, and does not receive the calls of one that takes over although its
// connection never broke, reads the table every ten seconds, and immediately when Probe reports that JetStream was
// away.
func TestAloneFindsOut(t *testing.T) {
	for _, told := range []bool{false, true} {
		for phase := time.Duration(0); phase < pollInterval; phase += 1700 * time.Millisecond {
			meet(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
				a := startPeer(t, s, lanes(4), deaf)
				time.Sleep(time.Minute + phase)
				b := startPeer(t, s, lanes(4), deaf)
				for begun := time.Now(); len(b.holds()) == 0; time.Sleep(time.Millisecond) {
					if time.Since(begun) > 2*pollInterval {
						t.Fatal("the other takes nothing over")
					}
				}
				most := pollInterval + signInterval
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
