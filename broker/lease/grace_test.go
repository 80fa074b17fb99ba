package lease

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/test/natstest"
)

// TestGrace: an instance may no longer act 5 s after its last successful beat by either clock, unless it is connected
// and continues to try. Without a connection it may act for maxBlip.
func TestGrace(t *testing.T) {
	start := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(mono, wall time.Duration) instant { return instant{wall: start.Add(wall), mono: mono} }
	both := func(d time.Duration) instant { return at(d, d) }
	attempt := func(d time.Duration) *instant { return new(both(d)) }
	const ms = time.Millisecond
	for _, test := range []struct {
		name   string
		grace  *grace
		now    instant
		lostAt *instant
		want   bool
	}{
		{"no grace", nil, both(0), nil, false},
		{"a beat within 5 s", &grace{beatSentAt: both(0)}, both(5000*ms - 1), nil, true},
		{"no beat within 5 s", &grace{beatSentAt: both(0)}, both(5000 * ms), nil, false},
		{"offline for less than 500 ms", &grace{beatSentAt: both(0)}, both(1500*ms - 1), attempt(1000 * ms), true},
		{"offline for 500 ms", &grace{beatSentAt: both(0)}, both(1500 * ms), attempt(1000 * ms), false},
		{"offline, and suspended", &grace{beatSentAt: both(0)}, at(1001*ms, 1500*ms), attempt(1000 * ms), false},
		{"suspended", &grace{beatSentAt: both(0)}, at(100*ms, 5000*ms), nil, false},
		{"the wall clock set back", &grace{beatSentAt: both(0)}, at(100*ms, -time.Hour), nil, true},
		{"no beat within 5 s, wall clock set back", &grace{beatSentAt: both(0)}, at(5000*ms, -time.Hour), nil, false},
		{"an attempt within 5 s", &grace{beatSentAt: both(0), attemptStart: attempt(14000 * ms)}, both(15000*ms - 1), nil,
			true},
		{"attempts for an hour", &grace{beatSentAt: both(0), attemptStart: attempt(time.Hour - time.Second)}, both(time.Hour),
			nil, true},
		{"no attempt within 5 s", &grace{beatSentAt: both(0), attemptStart: attempt(2000 * ms)}, both(7000 * ms), nil, false},
		{"an attempt, and offline", &grace{beatSentAt: both(0), attemptStart: attempt(4900 * ms)}, both(5100 * ms),
			attempt(5000 * ms), false},
	} {
		if got := test.grace.permits(test.now, test.lostAt); got != test.want {
			t.Errorf("%s: got %t, want %t", test.name, got, test.want)
		}
	}
}

// TestClaims: a claim with a higher epoch supersedes one with a lower epoch, and of equal epochs that with the higher
// version. A release keeps the earlier cursors of lanes without one.
func TestClaims(t *testing.T) {
	now := time.UnixMilli(1000)
	first := Claim{}.taken(Instance{ID: "a"}, now)
	renewed := first.renewed(now)
	second := first.released(map[string]Cursor{"L": {Next: 7}, "M": {Next: 8}}, now).taken(Instance{ID: "b"}, now)
	for _, c := range []struct {
		name        string
		new, old    Claim
		want, again bool
	}{
		{"renewed", renewed, first, true, false}, {"taken", second, renewed, true, false},
		{"same", first, first, true, true},
	} {
		if got, again := c.new.supersedes(c.old), c.old.supersedes(c.new); got != c.want || again != c.again {
			t.Errorf("%s: %t and %t, want %t and %t", c.name, got, again, c.want, c.again)
		}
	}
	third := second.released(map[string]Cursor{"L": {Next: 9}, "M": {}}, now)
	if third.Cursors["L"].Next != 9 || third.Cursors["M"].Next != 8 || second.Cursors["L"].Next != 7 ||
		third.Active.ID != "" {
		t.Errorf("released as %+v after %+v", third, second)
	}
}

// TestDeniedHolderIsResumed: if Held returned false to the holder, it is told when Held returns true again.
func TestDeniedHolderIsResumed(t *testing.T) {
	withStream(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
		a := startPeer(t, s)
		time.Sleep(time.Minute)
		check(t, 0, a)
		a.grace.Store(nil)
		if a.newest().Held() {
			t.Fatal("the lease is held without a grace")
		}
		time.Sleep(maxHandover)
		select {
		case <-a.newest().Resumed():
		default:
			t.Error("the holder is not told")
		}
		check(t, 0, a)
	})
}
