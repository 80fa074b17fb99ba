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
// including the intake, the retry lanes and the lane of paused messages.
const (
	manyLevels  = "1s 5s 10s 1m 10m"
	MemberLanes = 10
)

// Member is the configuration of one of several instances.
func Member(t testing.TB, maxOwners int) broker.Config {
	return broker.Config{Ladder: Ladder(t, manyLevels), MaxOwners: maxOwners}
}

// CheckOwned compares the numbers of lanes that the instances own, in ascending order. It fails for a lane with two
// owners or none.
func CheckOwned(t *testing.T, want []int, all ...*Instance) {
	t.Helper()
	time.Sleep(50 * time.Millisecond) // until lanes that were released have new owners
	synctest.Wait()
	owner := make(map[string]int)
	var counts []int
	for n, i := range all {
		count := 0
		for l := range strings.FieldsSeq(OwnedLanes(i)) {
			if other, twice := owner[l]; twice {
				t.Errorf("%s is owned by %d and by %d", l, other, n)
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

// Fickle is a leaser that grants every lane. A test can put the lease of one lane in doubt.
type Fickle struct {
	lease.Static
	Of    string
	Held  atomic.Bool
	Lease chan *FickleLease // each that was acquired of that lane
}

// FickleLease is the lease of that lane. The test sends its beats, ends it, and receives the cursor of its release.
type FickleLease struct {
	of   *Fickle
	Beat chan struct{}
	Lost chan struct{}
	from lease.Cursor
	Left chan lease.Cursor
}

func (f *Fickle) Acquire(ctx context.Context, lane string, waiting func()) (lease.Lease, error) {
	if lane != f.Of {
		return f.Static.Acquire(ctx, lane, waiting)
	}
	l := &FickleLease{of: f, Beat: make(chan struct{}), Lost: make(chan struct{}), Left: make(chan lease.Cursor, 1)}
	f.Lease <- l
	return l, nil
}

func (l *FickleLease) Cursor() lease.Cursor { return l.from }

func (l *FickleLease) Held() bool { return l.of.Held.Load() }

func (l *FickleLease) Beats() <-chan struct{} { return l.Beat }

func (l *FickleLease) Done() <-chan struct{} { return l.Lost }

func (l *FickleLease) Decline() {}

func (l *FickleLease) Release(_ context.Context, at lease.Cursor) error {
	l.Left <- at
	return nil
}

// Doubting is a leaser that counts the requests of the broker to check the ownership of lanes.
type Doubting struct {
	lease.Static
	Told atomic.Int64
}

func (d *Doubting) Probe() { d.Told.Add(1) }
