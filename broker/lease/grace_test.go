package lease

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/test/natstest"
)

// TestGrace: an owner stops 5 s after its last good beat by either clock, unless it kept trying to beat. An instance
// that is alone stops when it gave no sign of life for 4 s, or has no connection.
func TestGrace(t *testing.T) {
	start := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(mono, wall time.Duration) instant { return instant{wall: start.Add(wall), mono: mono} }
	both := func(d time.Duration) instant { return at(d, d) }
	silent := func(d time.Duration) *instant { i := both(d); return &i }
	const ms, offline = time.Millisecond, false
	for _, test := range []struct {
		name      string
		grace     *grace
		now       instant
		connected bool
		want      bool
	}{
		{"nothing known", nil, both(0), true, false},
		{"beat", &grace{since: both(0)}, both(5000*ms - 1), true, true},
		{"no beat", &grace{since: both(0)}, both(5000 * ms), true, false},
		{"beat, and offline since", &grace{since: both(0)}, both(5000*ms - 1), offline, true},
		{"suspended", &grace{since: both(0)}, at(100*ms, 5000*ms), true, false},
		{"the wall clock set back", &grace{since: both(0)}, at(100*ms, -time.Hour), true, true},
		{"stopped, and the wall clock set back", &grace{since: both(0)}, at(5000*ms, -time.Hour), true, false},
		{"nobody answers", &grace{since: both(0), unanswered: silent(14000 * ms)}, both(15000*ms - 1), true, true},
		{"nobody answers for an hour", &grace{since: both(0), unanswered: silent(time.Hour - time.Second)}, both(time.Hour),
			true, true},
		{"nobody answered, then stopped", &grace{since: both(0), unanswered: silent(2000 * ms)}, both(7000 * ms),
			true, false},
		{"nobody can be asked", &grace{since: both(0), unanswered: silent(4000 * ms)}, both(5000 * ms), offline, false},
		{"alone", &grace{since: both(0), alone: true}, both(4000*ms - 1), true, true},
		{"alone and stopped", &grace{since: both(0), alone: true}, both(4000 * ms), true, false},
		{"alone and suspended", &grace{since: both(0), alone: true}, at(0, 4000*ms), true, false},
		{"alone and offline", &grace{since: both(0), alone: true}, both(1), offline, false},
	} {
		if got := test.grace.permits(test.now, test.connected); got != test.want {
			t.Errorf("%s: got %t", test.name, got)
		}
	}
}

// TestLiveness: the time without a change of a counter begins when it is first read, and counts only while all rounds
// succeed.
func TestLiveness(t *testing.T) {
	start := time.Now()
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	r := liveness{seen: make(map[string]sighting)}
	check := func(what string, still time.Duration, lives bool) {
		t.Helper()
		if got := r.unchangedFor("a"); got != still || r.everAlive("a") != lives {
			t.Errorf("%s: still for %s, lives: %t; want %s, %t", what, got, r.everAlive("a"), still, lives)
		}
	}
	check("never heard of", 0, false)
	r.record("a", 7, false, at(0))
	check("found", 0, false)
	r.recordSuccess(at(0), at(0), nil)
	r.record("a", 7, false, at(3))
	r.recordSuccess(at(4), at(4), nil)
	check("as it was", 4*time.Second, false)
	r.record("a", 8, false, at(5))
	r.record("a", 8, false, at(6))
	r.record("a", 7, true, at(6)) // repeated
	r.recordSuccess(at(5), at(6), nil)
	check("moved", 0, true)
	r.recordSuccess(at(9), at(9), nil)
	check("still", 4*time.Second, true)
	r.recordFailure()
	check("nobody answers", 0, true)
	r.recordSuccess(at(20), at(21), nil)
	r.recordSuccess(at(23), at(23), nil)
	check("counted again", 2*time.Second, true)
	r.recordSuccess(at(24), at(24), []string{"b"})
	r.recordSuccess(at(26), at(26), []string{"b"})
	if got := r.unchangedFor("b"); got != 2*time.Second {
		t.Errorf("without a counter: still for %s, want 2s", got)
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
		a.grace.Store(&grace{since: a.at(time.Now().Add(-maxSignAge)), alone: true})
		if lease.Held() {
			t.Fatal("held without a sign of life")
		}
		a.grace.Store(trusted) // renewed before anybody called Held
		time.Sleep(settle)
		select {
		case <-lease.Beats():
		default:
			t.Error("the lease is held again without a beat")
		}
		if !lease.Held() {
			t.Error("it is not held")
		}
	})
}
