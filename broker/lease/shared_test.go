package lease

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/test/natstest"
)

// TestAloneCostsLittle: an instance that is alone owns all lanes immediately, and then sends one request every ten
// seconds.
func TestAloneCostsLittle(t *testing.T) {
	withStream(t, func(t *testing.T, s *natstest.Server, js jetstream.JetStream) {
		a := startPeer(t, s, lanes(24))
		time.Sleep(maxHandover)
		checkHolds(t, "24", a)
		sent := func() uint64 { return a.nc.Stats().OutMsgs }
		sentAtStart, sequence := sent(), lastSequence(t, js)
		if sentAtStart > 20 {
			t.Errorf("at its start, the instance sent %d messages, want at most 20", sentAtStart)
		}
		time.Sleep(time.Hour)
		if got := sent() - sentAtStart; got > 360 {
			t.Errorf("in an hour, the instance sent %d messages, want at most 360", got)
		}
		if got := lastSequence(t, js) - sequence; got != 0 {
			t.Errorf("in an hour, the instance stored %d messages, want none", got)
		}
		checkHolds(t, "24", a)
	})
}

// TestJoinWaitsAndMovesFewest: after an instance has joined, no lane moves for 5 s. Then as few lanes as possible move.
func TestJoinWaitsAndMovesFewest(t *testing.T) {
	withStream(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
		a := startPeer(t, s, lanes(10))
		time.Sleep(time.Minute)
		b := startPeer(t, s, lanes(10))
		time.Sleep(5*time.Second - time.Millisecond)
		checkHolds(t, "10 0", a, b)
		time.Sleep(maxHandover)
		checkHolds(t, "5 5", a, b)
		earlier := b.holds()
		c := startPeer(t, s, lanes(10))
		time.Sleep(maxHandover) // so that c joins before d
		d := startPeer(t, s, lanes(10))
		time.Sleep(10 * time.Second)
		checkHolds(t, "4 3 3 0", a, b, c, d)
		for _, lane := range b.holds() {
			if !slices.Contains(earlier, lane) {
				t.Errorf("%s has moved to b, want only moves to c", lane)
			}
		}
		d.mu.Lock()
		ready := len(d.readyLanes)
		d.mu.Unlock()
		if ready != 10 {
			t.Errorf("the standby is ready for %d of 10 lanes", ready)
		}
		c.crash()
		time.Sleep(6 * time.Second)
		checkHolds(t, "4 3 3", a, b, d)
	})
}

// TestStopHandsOver: after a clean stop of an instance, its lanes immediately have another owner, which begins at the
// cursors of the stopped instance.
func TestStopHandsOver(t *testing.T) {
	withStream(t, func(t *testing.T, s *natstest.Server, js jetstream.JetStream) {
		a := startPeer(t, s, lanes(6))
		b := startPeer(t, s, lanes(6))
		time.Sleep(10 * time.Second)
		checkHolds(t, "3 3", a, b)
		moved := a.holds()
		a.mu.Lock()
		a.releaseSequence = 4711
		a.mu.Unlock()
		a.stop()
		time.Sleep(maxHandover)
		checkHolds(t, "6", b)
		for _, lane := range moved {
			if got := b.currentLeases()[lane].Cursor().Next; got != 4711 {
				t.Errorf("%s begins at %d, want 4711", lane, got)
			}
		}
		time.Sleep(time.Hour)
		if list := subjects(t, js); len(list) != 2 {
			t.Errorf("after an hour, the stream has %v, want the table and one counter", list)
		}
	})
}

// TestCrashIsNoticed: if an instance dies, its lanes have another owner at most 5.5 s later, and not before its grace
// would have ended. This also holds for an instance that was alone.
func TestCrashIsNoticed(t *testing.T) {
	for _, alone := range []bool{true, false} {
		for phase := time.Duration(0); phase < time.Second; phase += 130 * time.Millisecond {
			withStream(t, func(t *testing.T, s *natstest.Server, js jetstream.JetStream) {
				a := startPeer(t, s, lanes(4))
				time.Sleep(300 * time.Millisecond)
				peers := []*peer{}
				if !alone {
					peers = append(peers, startPeer(t, s, lanes(4)))
				}
				time.Sleep(10*time.Second + phase)
				crashed := time.Now()
				a.nc.Close()
				if alone {
					peers = append(peers, startPeer(t, s, lanes(4)))
				}
				for len(peers[0].holds()) < 4 && time.Since(crashed) < time.Minute {
					time.Sleep(time.Millisecond)
				}
				took := time.Since(crashed)
				// The other instances read the last beat at most half a second after it was sent.
				if took > 5500*time.Millisecond+maxHandover || took < 4*time.Second-maxHandover {
					t.Errorf("alone %t, phase %s: the lanes had another owner after %s", alone, phase, took)
				}
				checkHolds(t, "0 4", append([]*peer{a}, peers...)...)
				time.Sleep(time.Minute)
				if list := subjects(t, js); len(list) != 2 {
					t.Errorf("a minute later, the stream has %v, want the table and one counter", list)
				}
			})
		}
	}
}

// TestStuckLoopLosesItsLane: a worker that receives no ticks loses its lane, and only this lane, to another instance.
func TestStuckLoopLosesItsLane(t *testing.T) {
	withStream(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
		a := startPeer(t, s, lanes(4))
		b := startPeer(t, s, lanes(4))
		time.Sleep(10 * time.Second)
		checkHolds(t, "2 2", a, b)
		lane := a.holds()[0]
		a.mu.Lock()
		a.stuckLanes[lane] = true
		lease := a.state.leases[lane]
		a.mu.Unlock()
		for ; lease.Held(); time.Sleep(time.Millisecond) {
		}
		stopped := time.Now()
		for ; b.Owner(lane) != b.Instance(); time.Sleep(time.Millisecond) {
			if time.Since(stopped) > 2*time.Second {
				t.Fatalf("2s after the stuck worker lost %s, its owner is %q", lane, b.Owner(lane))
			}
		}
	})
}

// TestParallelStart: several instances start at the same time and compete for the table. No lane ever has two
// owners, and in the end every lane has one.
func TestParallelStart(t *testing.T) {
	withStream(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
		var peers []*peer
		for range 6 {
			peers = append(peers, startPeer(t, s, lanes(24)))
		}
		for n := range 2000 {
			time.Sleep(time.Duration(1+n/100) * time.Millisecond)
			synctest.Wait()
			held := make(map[string]bool)
			for _, p := range peers {
				for _, lane := range p.holds() {
					if held[lane] {
						t.Fatalf("%s has two owners", lane)
					}
					held[lane] = true
				}
			}
		}
		total, owners := 0, 0
		for _, p := range peers {
			if n := len(p.holds()); n > 0 {
				owners++
				total += n
			}
		}
		if total != 24 || owners != 3 {
			t.Errorf("%d lanes are owned by %d instances, want 24 and 3", total, owners)
		}
	})
}
