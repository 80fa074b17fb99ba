package harness

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"delaybroker/broker"
	"delaybroker/broker/lease"
)

// Together is a Leaser for a configuration. It makes the instances of a test choose the active one, as real instances
// do. Without it, the instance of a test is alone, and sends no heartbeats, of which a fake month has millions.
var Together lease.Leaser = together{}

type together struct{ lease.Leaser }

// Static is a Leaser that makes its instance active permanently. No other instance may run beside it.
type Static struct{}

// Run waits for the end of ctx.
func (Static) Run(ctx context.Context) { <-ctx.Done() }

// Acquire returns immediately.
func (Static) Acquire(ctx context.Context, _ func()) (lease.Lease, error) {
	return permanentLease{}, ctx.Err()
}

// Active returns "": the instance communicates with no other.
func (Static) Active() string { return "" }

// Probe does nothing.
func (Static) Probe() {}

type permanentLease struct{}

func (permanentLease) Cursor(string) lease.Cursor                             { return lease.Cursor{} }
func (permanentLease) Held() bool                                             { return true }
func (permanentLease) Resumed() <-chan struct{}                               { return nil }
func (permanentLease) Done() <-chan struct{}                                  { return nil }
func (permanentLease) HasSuccessor() bool                                     { return false }
func (permanentLease) Decline()                                               {}
func (permanentLease) Release(context.Context, map[string]lease.Cursor) error { return nil }

// leaserOf returns the leaser with which a broker starts.
func leaserOf(l lease.Leaser) lease.Leaser {
	switch l {
	case nil:
		return Static{}
	case Together:
		return nil
	}
	return l
}

// MemberConfig returns the configuration of an instance that has stand-bys.
func MemberConfig(t testing.TB) broker.Config {
	return broker.Config{Ladder: Ladder(t, "1s 5s 10s 1m 10m"), Leaser: Together}
}

// Active returns the index of the instance that works all lanes, or -1. It fails the test if several instances work
// lanes, or if one works only a part of them.
func Active(t testing.TB, all ...*Instance) int {
	t.Helper()
	active := -1
	for n, i := range all {
		if i.Ended {
			continue
		}
		lanes, owned := i.Broker.Status().Lanes, 0
		for _, l := range lanes {
			if l.Owned && !l.InDoubt {
				owned++
			}
		}
		if owned > 0 && active >= 0 {
			t.Errorf("the instances %d and %d are both active", active, n)
		}
		if owned > 0 {
			active = n
		}
		if owned > 0 && owned < len(lanes) {
			t.Errorf("instance %d works %d of %d lanes", n, owned, len(lanes))
		}
	}
	return active
}

// CheckActive fails the test unless exactly this instance is active.
func CheckActive(t testing.TB, want int, all ...*Instance) {
	t.Helper()
	time.Sleep(50 * time.Millisecond) // after a release, the next instance has taken over then
	synctest.Wait()
	if got := Active(t, all...); got != want {
		t.Errorf("instance %d is active, want %d", got, want)
	}
}

// UncertainLeaser is a leaser that makes its instance active. A test can put the lease in doubt.
type UncertainLeaser struct {
	Static
	Valid  atomic.Bool          // false: the lease is in doubt
	Leases chan *UncertainLease // receives each acquired lease
}

// NewUncertainLeaser returns a leaser. Valid is true at the beginning.
func NewUncertainLeaser() *UncertainLeaser {
	f := &UncertainLeaser{Leases: make(chan *UncertainLease, 10)}
	f.Valid.Store(true)
	return f
}

// UncertainLease is the lease of an UncertainLeaser. The test sends on Resume after it has set Valid, closes Lost to
// end the lease, and receives the cursors of the release from Released.
type UncertainLease struct {
	permanentLease
	leaser   *UncertainLeaser
	Resume   chan struct{}
	Lost     chan struct{}
	Released chan map[string]lease.Cursor
}

func (f *UncertainLeaser) Acquire(ctx context.Context, _ func()) (lease.Lease, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l := &UncertainLease{
		leaser: f, Resume: make(chan struct{}), Lost: make(chan struct{}), Released: make(chan map[string]lease.Cursor, 1),
	}
	f.Leases <- l
	return l, nil
}

func (l *UncertainLease) Held() bool { return l.leaser.Valid.Load() }

func (l *UncertainLease) Resumed() <-chan struct{} { return l.Resume }

func (l *UncertainLease) Done() <-chan struct{} { return l.Lost }

func (l *UncertainLease) Release(_ context.Context, at map[string]lease.Cursor) error {
	l.Released <- at
	return nil
}

// ProbeCounter is a leaser that counts the calls of Probe, with which the broker requests a check of the claim.
type ProbeCounter struct {
	Static
	Probes atomic.Int64
}

func (d *ProbeCounter) Probe() { d.Probes.Add(1) }
