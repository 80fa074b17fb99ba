package lease

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/test/natstest"
)

// TestAloneCostsLittle: an instance that is alone owns everything immediately, and then sends one request every ten
// seconds.
func TestAloneCostsLittle(t *testing.T) {
	meet(t, func(t *testing.T, s *natstest.Server, js jetstream.JetStream) {
		a := startPeer(t, s, lanes(24))
		time.Sleep(settle)
		checkHolds(t, "24", a)
		sent := func() uint64 { return a.nc.Stats().OutMsgs }
		before, stored := sent(), lastSequence(t, js)
		if before > 20 {
			t.Errorf("at its start it sent %d messages, want at most 20", before)
		}
		time.Sleep(time.Hour)
		if got := sent() - before; got > 360 {
			t.Errorf("in an hour it sent %d messages, want 360", got)
		}
		if got := lastSequence(t, js) - stored; got != 0 {
			t.Errorf("in an hour it stored %d messages, want none", got)
		}
		checkHolds(t, "24", a)
	})
}

// TestJoinWaitsAndMovesFewest: after a join no lane moves for 5 s, and then as few as possible.
func TestJoinWaitsAndMovesFewest(t *testing.T) {
	meet(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
		a := startPeer(t, s, lanes(10))
		time.Sleep(time.Minute)
		b := startPeer(t, s, lanes(10))
		time.Sleep(5*time.Second - time.Millisecond)
		checkHolds(t, "10 0", a, b)
		time.Sleep(settle)
		checkHolds(t, "5 5", a, b)
		kept := b.holds()
		c := startPeer(t, s, lanes(10))
		time.Sleep(settle) // so that it is the first of the two
		d := startPeer(t, s, lanes(10))
		time.Sleep(10 * time.Second)
		checkHolds(t, "4 3 3 0", a, b, c, d)
		for _, lane := range b.holds() {
			if !slices.Contains(kept, lane) {
				t.Errorf("%s moved although it need not", lane)
			}
		}
		d.mu.Lock()
		ready := len(d.ready)
		d.mu.Unlock()
		if ready != 10 {
			t.Errorf("the standby instance is ready for %d lanes of 10", ready)
		}
		c.crash()
		time.Sleep(6 * time.Second)
		checkHolds(t, "4 3 3", a, b, d)
	})
}

// TestStopHandsOverAtOnce: the lanes that a clean stop frees have another owner immediately, which begins at the cursor
// of the previous owner.
func TestStopHandsOverAtOnce(t *testing.T) {
	meet(t, func(t *testing.T, s *natstest.Server, js jetstream.JetStream) {
		a := startPeer(t, s, lanes(6))
		b := startPeer(t, s, lanes(6))
		time.Sleep(10 * time.Second)
		checkHolds(t, "3 3", a, b)
		gone := a.holds()
		a.mu.Lock()
		a.next = 4711
		a.mu.Unlock()
		a.stop()
		time.Sleep(settle)
		checkHolds(t, "6", b)
		for _, lane := range gone {
			if got := b.all()[lane].Cursor().Next; got != 4711 {
				t.Errorf("%s begins at %d, want 4711", lane, got)
			}
		}
		time.Sleep(time.Hour)
		if list := subjects(t, js); len(list) != 2 {
			t.Errorf("after an hour there are %v, want the table and one counter", list)
		}
	})
}

// TestCrashIsNoticed: whenever an instance dies, its lanes have another owner at most 5.5 s later, and not before its
// grace would have ended. The result is the same if it was alone.
func TestCrashIsNoticed(t *testing.T) {
	for _, alone := range []bool{true, false} {
		for phase := time.Duration(0); phase < time.Second; phase += 130 * time.Millisecond {
			meet(t, func(t *testing.T, s *natstest.Server, js jetstream.JetStream) {
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
				// The last beat is read half a second after it was sent at the latest.
				if took > 5500*time.Millisecond+settle || took < 4*time.Second-settle {
					t.Errorf("alone: %t, after %s: taken over after %s", alone, phase, took)
				}
				checkHolds(t, "0 4", append([]*peer{a}, peers...)...)
				time.Sleep(time.Minute)
				if list := subjects(t, js); len(list) != 2 {
					t.Errorf("a minute later there are %v, want the table and one counter", list)
				}
			})
		}
	}
}

// TestStuckLoopLosesItsLane: a loop that receives no beat loses its lane, and only that, to an instance whose loops
// run.
func TestStuckLoopLosesItsLane(t *testing.T) {
	meet(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
		a := startPeer(t, s, lanes(4))
		b := startPeer(t, s, lanes(4))
		time.Sleep(10 * time.Second)
		checkHolds(t, "2 2", a, b)
		lane := a.holds()[0]
		a.mu.Lock()
		a.stuck[lane] = true
		lease := a.local.leases[lane]
		a.mu.Unlock()
		for ; lease.Held(); time.Sleep(time.Millisecond) {
		}
		stopped := time.Now()
		for ; b.Owner(lane) != b.Instance(); time.Sleep(time.Millisecond) {
			if time.Since(stopped) > 2*time.Second {
				t.Fatalf("2s after its loop was given up, %s is owned by %q", lane, b.Owner(lane))
			}
		}
	})
}

// TestStartAtOnce: instances that start at the same time compete for the table, and every lane has one owner in the
// end.
func TestStartAtOnce(t *testing.T) {
	meet(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
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
