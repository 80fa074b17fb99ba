package harness

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"delaybroker/broker"
	"delaybroker/broker/lease"
)

// manyLevels is the ladder of the tests with several instances. MemberLanes is the number of lanes with this ladder,
// including the intake, the retry lanes and the lane of a pause.
const (
	manyLevels  = "1s 5s 10s 1m 10m"
	MemberLanes = 10
)

func MemberConfig(t testing.TB, maxOwners int) broker.Config {
	return broker.Config{Ladder: Ladder(t, manyLevels), MaxOwners: maxOwners}
}

// CheckOwned fails the test unless the instances own as many lanes as want says, and each lane has one owner. The
// numbers in want are in ascending order, not in that of the instances.
func CheckOwned(t *testing.T, want []int, all ...*Instance) {
	t.Helper()
	time.Sleep(50 * time.Millisecond) // released lanes have new owners then
	synctest.Wait()
	owner := make(map[string]int)
	var counts []int
	for n, i := range all {
		count := 0
		for l := range strings.FieldsSeq(OwnedLanes(i)) {
			if other, twice := owner[l]; twice {
				t.Errorf("%s is owned by the instances %d and %d", l, other, n)
			}
			owner[l] = n
			count++
		}
		counts = append(counts, count)
	}
	slices.Sort(counts)
	if !slices.Equal(counts, want) {
		t.Errorf("instances own %v lanes, want %v", counts, want)
	}
	if len(owner) != MemberLanes {
		t.Errorf("%d lanes are owned, want %d", len(owner), MemberLanes)
	}
}

// UncertainLeaser is a leaser that grants every lane. A test can put the lease of one lane in doubt.
type UncertainLeaser struct {
	lease.Static
	lane   string
	Valid  atomic.Bool          // false: the lease of that lane is in doubt
	Leases chan *UncertainLease // receives each acquired lease of that lane
}

// NewUncertainLeaser returns a leaser for doubts about this lane. Valid is true at the beginning.
func NewUncertainLeaser(lane string) *UncertainLeaser {
	f := &UncertainLeaser{lane: lane, Leases: make(chan *UncertainLease, 10)}
	f.Valid.Store(true)
	return f
}

// UncertainLease is the lease of the lane of an UncertainLeaser. The test sends on Tick, closes Lost to end the lease,
// and receives the cursor of the release from Released.
type UncertainLease struct {
	leaser   *UncertainLeaser
	Tick     chan struct{}
	Lost     chan struct{}
	Released chan lease.Cursor
}

func (f *UncertainLeaser) Acquire(ctx context.Context, lane string, waiting func()) (lease.Lease, error) {
	if lane != f.lane {
		return f.Static.Acquire(ctx, lane, waiting)
	}
	l := &UncertainLease{
		leaser: f, Tick: make(chan struct{}), Lost: make(chan struct{}), Released: make(chan lease.Cursor, 1),
	}
	f.Leases <- l
	return l, nil
}

func (l *UncertainLease) Cursor() lease.Cursor { return lease.Cursor{} }

func (l *UncertainLease) Held() bool { return l.leaser.Valid.Load() }

func (l *UncertainLease) Ticks() <-chan struct{} { return l.Tick }

func (l *UncertainLease) Done() <-chan struct{} { return l.Lost }

func (l *UncertainLease) Decline() {}

func (l *UncertainLease) Release(_ context.Context, at lease.Cursor) error {
	l.Released <- at
	return nil
}

// ProbeCounter is a leaser that counts the calls of Probe, with which the broker requests a check of the ownership.
type ProbeCounter struct {
	lease.Static
	Probes atomic.Int64
}

func (d *ProbeCounter) Probe() { d.Probes.Add(1) }
