package lease

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/test/natstest"
)

// TestGrace: an instance may no longer act 5 s after its last good beat by either clock, unless it is connected and
// continues to try. An instance that is alone stops when its sign of life is 4 s old, or when it is not connected.
func TestGrace(t *testing.T) {
	start := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(mono, wall time.Duration) instant { return instant{wall: start.Add(wall), mono: mono} }
	both := func(d time.Duration) instant { return at(d, d) }
	attempt := func(d time.Duration) *instant { return new(both(d)) }
	const ms, offline = time.Millisecond, false
	for _, test := range []struct {
		name      string
		grace     *grace
		now       instant
		connected bool
		want      bool
	}{
		{"no grace", nil, both(0), true, false},
		{"a beat within 5 s", &grace{beatSentAt: both(0)}, both(5000*ms - 1), true, true},
		{"no beat within 5 s", &grace{beatSentAt: both(0)}, both(5000 * ms), true, false},
		{"a beat within 5 s, and offline", &grace{beatSentAt: both(0)}, both(5000*ms - 1), offline, true},
		{"suspended", &grace{beatSentAt: both(0)}, at(100*ms, 5000*ms), true, false},
		{"the wall clock set back", &grace{beatSentAt: both(0)}, at(100*ms, -time.Hour), true, true},
		{"no beat within 5 s, wall clock set back", &grace{beatSentAt: both(0)}, at(5000*ms, -time.Hour), true, false},
		{"an attempt within 5 s", &grace{beatSentAt: both(0), attemptStart: attempt(14000 * ms)}, both(15000*ms - 1),
			true, true},
		{"attempts for an hour", &grace{beatSentAt: both(0), attemptStart: attempt(time.Hour - time.Second)}, both(time.Hour),
			true, true},
		{"no attempt within 5 s", &grace{beatSentAt: both(0), attemptStart: attempt(2000 * ms)}, both(7000 * ms),
			true, false},
		{"an attempt, and offline", &grace{beatSentAt: both(0), attemptStart: attempt(4000 * ms)}, both(5000 * ms),
			offline, false},
		{"alone", &grace{beatSentAt: both(0), alone: true}, both(4000*ms - 1), true, true},
		{"alone, and an old sign of life", &grace{beatSentAt: both(0), alone: true}, both(4000 * ms), true, false},
		{"alone and suspended", &grace{beatSentAt: both(0), alone: true}, at(0, 4000*ms), true, false},
		{"alone and offline", &grace{beatSentAt: both(0), alone: true}, both(1), offline, false},
	} {
		if got := test.grace.permits(test.now, test.connected); got != test.want {
			t.Errorf("%s: got %t, want %t", test.name, got, test.want)
		}
	}
}

// TestLiveness: the time for which a counter has not changed begins when its value is first read. It begins again after
// a failed round.
func TestLiveness(t *testing.T) {
	start := time.Now()
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	r := liveness{sightings: make(map[string]sighting)}
	check := func(name string, unchanged time.Duration, alive bool) {
		t.Helper()
		if got := r.unchangedFor("a"); got != unchanged || r.everAlive("a") != alive {
			t.Errorf("%s: unchanged for %s, alive %t; want %s, %t", name, got, r.everAlive("a"), unchanged, alive)
		}
	}
	check("unknown", 0, false)
	r.record("a", 7, false, at(0))
	check("read once", 0, false)
	r.recordSuccess(at(0), at(0), nil)
	r.record("a", 7, false, at(3))
	r.recordSuccess(at(4), at(4), nil)
	check("unchanged since the first read", 4*time.Second, false)
	r.record("a", 8, false, at(5))
	r.record("a", 8, false, at(6))
	r.record("a", 7, true, at(6)) // an old counter
	r.recordSuccess(at(5), at(6), nil)
	check("changed", 0, true)
	r.recordSuccess(at(9), at(9), nil)
	check("unchanged since a change", 4*time.Second, true)
	r.recordFailure()
	check("after a failed round", 0, true)
	r.recordSuccess(at(20), at(21), nil)
	r.recordSuccess(at(23), at(23), nil)
	check("two rounds later", 2*time.Second, true)
	r.recordSuccess(at(24), at(24), []string{"b"})
	r.recordSuccess(at(26), at(26), []string{"b"})
	if got := r.unchangedFor("b"); got != 2*time.Second {
		t.Errorf("an instance without a counter: unchanged for %s, want 2s", got)
	}
}

// TestDeniedWorkerGetsTick: if Held returned false to a worker, the worker gets a tick when Held would return true
// again, even if nothing asked in between whether the lease is held.
func TestDeniedWorkerGetsTick(t *testing.T) {
	withStream(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
		a := startPeer(t, s, nil)
		lease, err := a.Acquire(t.Context(), "L", func() {})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		for len(lease.Ticks()) > 0 {
			<-lease.Ticks()
		}
		valid := a.grace.Load()
		a.grace.Store(&grace{beatSentAt: a.at(time.Now().Add(-maxSignAge)), alone: true})
		if lease.Held() {
			t.Fatal("the lease is held without a sign of life")
		}
		a.grace.Store(valid) // as if the instance had renewed its sign of life in time
		time.Sleep(maxHandover)
		select {
		case <-lease.Ticks():
		default:
			t.Error("the worker gets no tick")
		}
		if !lease.Held() {
			t.Error("the lease is not held")
		}
	})
}
