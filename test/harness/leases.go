package harness

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"delaybroker/broker"
	"delaybroker/broker/lease"
	"delaybroker/test/harness/static"
)

// Together is a Leaser for a configuration. It makes the instances of a test choose the active one, as real instances
// do. Without it, the instance of a test is alone, and sends no heartbeats, of which a fake month has millions.
var Together lease.Leaser = together{}

type together struct{ lease.Leaser }

// leaserOf returns the leaser with which a broker starts.
func leaserOf(l lease.Leaser) lease.Leaser {
	switch l {
	case nil:
		return static.Leaser{}
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
	static.Leaser
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
	static.Lease
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
	static.Leaser
	Probes atomic.Int64
}

func (d *ProbeCounter) Probe() { d.Probes.Add(1) }
