package lease

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/test/natstest"
)

// TestServerAway: while the server is down, no instance acts. When the server is up again, the active instance
// continues with its lease, though the others may reconnect first.
func TestServerAway(t *testing.T) {
	for _, down := range []time.Duration{2 * time.Second, time.Minute} {
		withStream(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
			a := startPeer(t, s)
			time.Sleep(time.Second)
			b, c := startPeer(t, s), startPeer(t, s)
			time.Sleep(10 * time.Second)
			s.Stop()
			time.Sleep(maxBlip)
			checkFor(t, down, -1, a, b, c)
			s.Start()
			time.Sleep(2500 * time.Millisecond)
			checkFor(t, 20*time.Second, 0, a, b, c)
			checkKept(t, a)
		})
	}
}

// TestCutOff: the active instance loses its connection for longer than silenceTimeout. It stops before a stand-by takes
// over, and stands by when it is back. No two instances ever act.
func TestCutOff(t *testing.T) {
	withStream(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
		g := &gate{Server: s}
		a := startPeer(t, s, withGate(g))
		time.Sleep(time.Second)
		b := startPeer(t, s)
		time.Sleep(10 * time.Second)
		check(t, 0, a, b)
		g.set(true)
		for start := time.Now(); time.Since(start) < 10*time.Second; time.Sleep(time.Millisecond) {
			switch now := active(a, b); {
			case now == -2:
				t.Fatalf("both act %s after the cut", time.Since(start))
			case now != 1 && time.Since(start) > time.Second:
				t.Fatalf("%d is active a second after the cut, want 1", now)
			}
		}
		g.set(false)
		checkFor(t, time.Minute, 1, a, b)
	})
}

// TestWithoutCalls: the instances do not reach each other, though both reach the stream, as with a permission that is
// missing. The stand-by sees no subscription of the active instance, but its beats, and takes over only when it dies.
func TestWithoutCalls(t *testing.T) {
	withStream(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
		a := startPeer(t, s, withoutCalls)
		time.Sleep(time.Minute)
		b := startPeer(t, s, withoutCalls)
		checkFor(t, time.Minute, 0, a, b)
		checkKept(t, a)
		a.nc.Close()
		if took := await(t, time.Minute, 1, a, b); took > aloneInterval+silenceTimeout {
			t.Errorf("taken over after %s", took)
		}
	})
}

// TestFrozen: the connection of the active instance receives nothing, and sends nothing or still sends. It stops within
// livenessTimeout. A stand-by takes over within livenessTimeout after the last beat that was stored, and later only by
// the time in which its own reads had no answer.
func TestFrozen(t *testing.T) {
	for _, bothWays := range []bool{false, true} {
		for _, blind := range []time.Duration{0, 2600 * time.Millisecond} {
			withStream(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
				stallers := []*natstest.Staller{s.Staller(), s.Staller()}
				stallers[0].BothWays = bothWays
				var peers []*peer
				for _, d := range stallers {
					peers = append(peers, startPeer(t, s, func(c *Config) {
						c.Conn.Close()
						c.Conn = s.Connect(nats.ReconnectBufSize(-1), nats.SetCustomDialer(d))
					}))
					time.Sleep(10 * time.Second)
				}
				check(t, 0, peers...)
				go stallers[0].Stall(time.Minute)
				go func() {
					time.Sleep(3 * time.Second)
					stallers[1].Stall(blind)
				}()
				took := await(t, time.Minute, 1, peers...)
				if want := livenessTimeout + 3*beatInterval + blind; took > want {
					t.Errorf("taken over after %s, want at most %s", took, want)
				}
				checkFor(t, 70*time.Second, 1, peers...)
			})
		}
	}
}
