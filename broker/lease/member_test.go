package lease

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/test/natstest"
)

// TestAlone: an instance that is alone is active immediately, and then renews its claim every 2 s.
func TestAlone(t *testing.T) {
	withStream(t, func(t *testing.T, s *natstest.Server, js jetstream.JetStream) {
		a := startPeer(t, s)
		time.Sleep(maxHandover)
		check(t, 0, a)
		sent, sequence := a.nc.Stats().OutMsgs, lastSequence(t, js)
		time.Sleep(time.Hour)
		if got := a.nc.Stats().OutMsgs - sent; got > 1800 {
			t.Errorf("in an hour, the instance sent %d messages, want at most 1800", got)
		}
		if got := lastSequence(t, js) - sequence; got != 1800 {
			t.Errorf("in an hour, the instance stored %d messages, want 1800", got)
		}
		checkKept(t, a)
	})
}

// TestWithoutRun: without Run, Acquire returns the error of its context, and Active and Probe do not block.
func TestWithoutRun(t *testing.T) {
	withStream(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
		m := NewMember(Config{Conn: s.Connect(), APIPrefix: "$JS.API", Subjects: testSubjects})
		m.Probe()
		m.Probe()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		start := time.Now()
		_, err := m.Acquire(ctx, func() {})
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Hour || m.Active() != "" {
			t.Errorf("ended with %v after %s, active %q; want the context's error after 1h", err, time.Since(start), m.Active())
		}
	})
}

// TestJoin: instances that join stand by, and are ready. The active instance stays active.
func TestJoin(t *testing.T) {
	withStream(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
		a := startPeer(t, s)
		time.Sleep(time.Minute)
		b, c := startPeer(t, s), startPeer(t, s)
		checkFor(t, time.Minute, 0, a, b, c)
		checkKept(t, a)
		for _, p := range []*peer{b, c} {
			p.mu.Lock()
			if !p.ready || p.Active() != a.Instance() {
				t.Errorf("ready %t, and active is %q; want true and %q", p.ready, p.Active(), a.Instance())
			}
			p.mu.Unlock()
		}
	})
}

// TestParallelStart: several instances start at the same time. Exactly one of them becomes active, and stays so.
func TestParallelStart(t *testing.T) {
	withStream(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
		var peers []*peer
		for range 6 {
			peers = append(peers, startPeer(t, s))
		}
		for active(peers...) == -1 {
			time.Sleep(time.Millisecond)
		}
		checkFor(t, time.Minute, active(peers...), peers...)
	})
}

// TestStopHandsOver: after a clean stop of the active instance, another one is active immediately, and begins at the
// cursors of the stopped instance. Of several stand-bys, the oldest takes over.
func TestStopHandsOver(t *testing.T) {
	withStream(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
		a := startPeer(t, s)
		time.Sleep(10 * time.Second)
		b := startPeer(t, s)
		time.Sleep(10 * time.Second)
		c := startPeer(t, s)
		time.Sleep(10 * time.Second)
		check(t, 0, a, b, c)
		a.setCursor(4711)
		a.stop()
		time.Sleep(maxHandover)
		check(t, 1, a, b, c)
		b.stop()
		time.Sleep(maxHandover)
		check(t, 2, a, b, c)
		if got := c.newest().Cursor("L").Next; got != 4711 { // b released with the cursor zero, which changes nothing
			t.Errorf("the lane begins at %d, want 4711", got)
		}
	})
}

// TestCrash: the server answers "no responders" for an instance whose process has died. Another instance takes over
// within a second, and a third one stands by.
func TestCrash(t *testing.T) {
	for phase := time.Duration(0); phase < time.Second; phase += 130 * time.Millisecond {
		withStream(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
			a, b, c := startPeer(t, s), startPeer(t, s), startPeer(t, s)
			time.Sleep(10*time.Second + phase)
			was := active(a, b, c)
			peers := []*peer{a, b, c}
			peers[was].nc.Close()
			crashed := time.Now()
			for {
				if now := active(peers...); now >= 0 && now != was {
					break
				}
				if time.Since(crashed) > time.Minute {
					t.Fatal("no instance takes over")
				}
				time.Sleep(time.Millisecond)
			}
			if took := time.Since(crashed); took > time.Second || took < silenceTimeout {
				t.Errorf("phase %s: another instance was active after %s, want %s to 1s", phase, took, silenceTimeout)
			}
		})
	}
}

// TestCrashAlone: an instance that starts after the only one has died takes over after livenessTimeout: it cannot know
// yet that the claim is old.
func TestCrashAlone(t *testing.T) {
	withStream(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
		a := startPeer(t, s)
		time.Sleep(time.Minute)
		a.crash()
		b := startPeer(t, s)
		if took := await(t, time.Minute, 1, a, b); took < livenessTimeout || took > livenessTimeout+maxHandover {
			t.Errorf("active after %s, want %s", took, livenessTimeout)
		}
	})
}

// TestReconnect: the active instance loses its connection, and is back before silenceTimeout, as after the restart of
// one server of a cluster. No other instance takes over, and the lease is held throughout if the outage was shorter
// than maxBlip.
func TestReconnect(t *testing.T) {
	for _, down := range []time.Duration{50 * time.Millisecond, 300 * time.Millisecond} {
		withStream(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
			g := &gate{Server: s}
			a := startPeer(t, s, withGate(g))
			time.Sleep(time.Second)
			b := startPeer(t, s)
			time.Sleep(10 * time.Second)
			for range 5 {
				g.set(true)
				time.Sleep(down)
				g.set(false)
				check(t, 0, a, b)
				checkFor(t, 3*time.Second, 0, a, b)
			}
			checkKept(t, a)
		})
	}
}

// TestFormat: a stand-by that cannot read the newest format does not take over while an instance that can stands by.
// The active instance hands over when it meets a message of a newer format.
func TestFormat(t *testing.T) {
	withStream(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
		a := startPeer(t, s, withFormat(1))
		time.Sleep(time.Second)
		b := startPeer(t, s, withFormat(1))
		time.Sleep(10 * time.Second)
		a.newest().Decline()
		checkFor(t, 10*time.Second, 0, a, b) // nobody reads a newer format
		c := startPeer(t, s, withFormat(2))
		time.Sleep(time.Second)
		check(t, 2, a, b, c) // a has declined
		d := startPeer(t, s, withFormat(2))
		time.Sleep(10 * time.Second)
		c.crash()
		await(t, 2*time.Second, 3, a, b, c, d)
		d.stop()
		await(t, 2*time.Second, 0, a, b, c, d) // nobody else is left, and a is older than b
	})
}

// TestAble: an active instance that cannot work yields to a stand-by that can. It does not take the work back while the
// other one can do it, and keeps it if nobody is better off.
func TestAble(t *testing.T) {
	withStream(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
		var ill [2]atomic.Bool
		able := func(n int) option {
			return withAble(func(bool) error {
				if ill[n].Load() {
					return errors.New("ill")
				}
				return nil
			})
		}
		a := startPeer(t, s, able(0))
		time.Sleep(time.Second)
		b := startPeer(t, s, able(1))
		time.Sleep(10 * time.Second)
		ill[0].Store(true)
		await(t, 3*beatInterval+maxHandover, 1, a, b)
		checkFor(t, 20*time.Second, 1, a, b)
		ill[0].Store(false)
		checkFor(t, 20*time.Second, 1, a, b)
		ill[0].Store(true)
		ill[1].Store(true)
		checkFor(t, 20*time.Second, 1, a, b)
		a.mu.Lock()
		a.holding = true // its loops are stuck
		a.mu.Unlock()
		ill[0].Store(false)
		await(t, 3*beatInterval+maxHandover, 0, a, b)
		ill[0].Store(true)
		ill[1].Store(false)
		await(t, yieldTimeout+3*beatInterval+maxHandover, 1, a, b)
	})
}
