package test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"delaybroker/broker"
	"delaybroker/broker/lease"
	"delaybroker/test/natstest"
)

// manyLevels is the ladder of these tests; with it there are many lanes, the intake, the retry lanes and what
// is paused included.
const (
	manyLevels = "1s 5s 10s 1m 10m"
	many       = 10
)

// member is the configuration of one of several instances.
func member(t testing.TB, most int) broker.Config {
	return broker.Config{Ladder: ladder(t, manyLevels), MaxOwners: most}
}

// checkOwned compares how many lanes each instance owns, and fails for a lane with two owners or none.
func checkOwned(t *testing.T, want []int, all ...*instance) {
	t.Helper()
	time.Sleep(50 * time.Millisecond) // until lanes that were released have new owners
	synctest.Wait()
	owner := make(map[string]int)
	var counts []int
	for n, i := range all {
		count := 0
		for l := range strings.FieldsSeq(ownedLanes(i)) {
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
	if len(owner) != many {
		t.Errorf("%d lanes are owned, want %d", len(owner), many)
	}
}

// TestInstancesShare: instances join one by one. Five seconds later they own equal numbers of lanes. Instances beyond
// the allowed number stand by until another one leaves.
func TestInstancesShare(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		start := time.Now()
		a := startBroker(t, s, member(t, 3))
		if took := time.Since(start); took > time.Second {
			t.Errorf("the first was ready after %s, want at once", took)
		}
		checkOwned(t, []int{many}, a)
		b := startBroker(t, s, member(t, 3))
		time.Sleep(3 * time.Second)
		checkOwned(t, []int{0, many}, a, b)
		time.Sleep(2 * time.Second)
		checkOwned(t, []int{5, 5}, a, b)
		c := startBroker(t, s, member(t, 3))
		d := startBroker(t, s, member(t, 3))
		time.Sleep(7 * time.Second)
		checkOwned(t, []int{0, 3, 3, 4}, a, b, c, d)
		c.stop()
		checkOwned(t, []int{3, 3, 4}, a, b, d)
		a.stop()
		checkOwned(t, []int{5, 5}, b, d)
		b.stop()
		checkOwned(t, []int{many}, d)
	})
}

// TestTakeOverAfterCrash: one of three instances crashes under load. Six seconds later everything that was due has been
// delivered. No message is lost or early, and each is stored once.
func TestTakeOverAfterCrash(t *testing.T) {
	t.Parallel()
	for seed := range 3 { // each of the instances once
		natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
			instances := []*instance{startBroker(t, s, member(t, 3)), startBroker(t, s, member(t, 3)),
				startBroker(t, s, member(t, 3))}
			time.Sleep(10 * time.Second)
			checkOwned(t, []int{3, 3, 4}, instances...)
			c := newClient(t, s)
			c.target("ORDERS", "orders.>")
			sent := 0
			send := func(n int) {
				for range n {
					for _, root := range []string{"delay.1s", "delay.5s", "delay.10s", "delayin.1700ms", "delayin.16s",
						"delay.30s"} {
						c.publish(root+".orders.x", fmt.Sprint(sent))
						sent++
					}
					time.Sleep(200 * time.Millisecond)
				}
			}
			send(50)
			time.Sleep(time.Duration(seed) * 337 * time.Millisecond)
			crashed := time.Now()
			instances[seed].crash()
			send(100)
			time.Sleep(time.Minute)
			worst, seen, ids := time.Duration(0), make(map[string]bool), make(map[string]bool)
			for _, a := range c.arrivals("ORDERS") {
				if a.At.Before(a.Due) {
					t.Errorf("%s came %s early", a.Body, a.Due.Sub(a.At))
				}
				if ids[a.ID] {
					t.Errorf("%s is stored twice", a.Body)
				}
				ids[a.ID], seen[a.Body] = true, true
				late := a.At.Sub(a.Due)
				if due := a.At; due.Before(crashed) && late > 0 {
					t.Errorf("%s came %s late before anything happened", a.Body, late)
				}
				worst = max(worst, late)
			}
			if len(seen) != sent || len(ids) != sent {
				t.Errorf("%d of %d came, under %d ids", len(seen), sent, len(ids))
			}
			if worst > 6*time.Second || worst < 3*time.Second {
				t.Errorf("the latest came %s late, want between 3s and 6s", worst)
			}
			t.Logf("seed %d: the latest came %s late", seed, worst)
			c.checkNoDead()
		})
	}
}

// TestRollingRestart stops and replaces each of three instances under load. Each message comes exactly once, and at
// most 200 ms late while its lane changes its owner.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		instances := []*instance{startBroker(t, s, member(t, 3)), startBroker(t, s, member(t, 3)),
			startBroker(t, s, member(t, 3))}
		time.Sleep(10 * time.Second)
		c := newClient(t, s)
		in := c.subscribe("orders.>")
		sent, stopped := 0, make(chan struct{})
		go func() {
			defer close(stopped)
			for range 300 {
				for _, root := range []string{"delay.1s", "delay.5s", "delay.10s", "delayin.1700ms", "delayin.16s",
					"delay.30s"} {
					c.publish(root+".orders.x", fmt.Sprint(sent))
					sent++
				}
				time.Sleep(200 * time.Millisecond)
			}
		}()
		for n := range instances {
			time.Sleep(7*time.Second + time.Duration(n)*131*time.Millisecond)
			instances[n].stop()
			checkOwned(t, []int{5, 5}, slices.Delete(slices.Clone(instances), n, n+1)...)
			time.Sleep(time.Second)
			instances[n] = startBroker(t, s, member(t, 3))
		}
		<-stopped
		time.Sleep(time.Minute)
		checkOwned(t, []int{3, 3, 4}, instances...)
		var worst time.Duration
		seen := make(map[string]int)
		for _, a := range in.all() {
			seen[a.Body]++
			worst = max(worst, a.At.Sub(a.Due))
			if a.At.Before(a.Due) {
				t.Errorf("%s came early", a.Body)
			}
		}
		for body, n := range seen {
			if n > 1 {
				t.Errorf("%s came %d times", body, n)
			}
		}
		if len(seen) != sent {
			t.Errorf("%d of %d came", len(seen), sent)
		}
		if worst > 200*time.Millisecond {
			t.Errorf("the latest came %s late", worst)
		}
		t.Logf("the latest came %s late", worst)
		c.checkEmpty()
	})
}

// fickle is a leaser that grants every lane, and whose lease of one of them a test can put in doubt.
type fickle struct {
	lease.Static
	of    string
	held  atomic.Bool
	lease chan *fickleLease // each that was acquired of that lane
}

type fickleLease struct {
	of   *fickle
	beat chan struct{}
	lost chan struct{}
	from lease.Cursor
	left chan lease.Cursor
}

func (f *fickle) Acquire(ctx context.Context, lane string, waiting func()) (lease.Lease, error) {
	if lane != f.of {
		return f.Static.Acquire(ctx, lane, waiting)
	}
	l := &fickleLease{of: f, beat: make(chan struct{}), lost: make(chan struct{}), left: make(chan lease.Cursor, 1)}
	f.lease <- l
	return l, nil
}

func (l *fickleLease) From() lease.Cursor     { return l.from }
func (l *fickleLease) Held() bool             { return l.of.held.Load() }
func (l *fickleLease) Beats() <-chan struct{} { return l.beat }
func (l *fickleLease) Done() <-chan struct{}  { return l.lost }
func (l *fickleLease) Decline()               {}
func (l *fickleLease) Release(_ context.Context, at lease.Cursor) error {
	l.left <- at
	return nil
}

// TestOwnerStopsInDoubt: while the lease of a lane is in doubt, nothing in the lane is read, delivered or committed.
// Afterwards the work continues where it stopped. An owner that has to release the lane drains, passes its position on,
// and may acquire the lane again.
func TestOwnerStopsInDoubt(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		f := &fickle{of: "DELAY_INTAKE", lease: make(chan *fickleLease, 10)}
		f.held.Store(true)
		startBroker(t, s, broker.Config{Ladder: ladder(t, "1s 10s"), Leaser: f})
		lease := <-f.lease
		c := newClient(t, s)
		in := c.subscribe("orders.>")
		c.publish("delayin.500ms.orders.x", "held in memory")
		time.Sleep(100 * time.Millisecond)
		f.held.Store(false)
		c.publish("delayin.500ms.orders.x", "unread")
		c.publish("delayin.5s.orders.x", "far")
		time.Sleep(100 * time.Millisecond)
		if n := pending(c, "DELAY_1s"); n != 0 {
			t.Errorf("%d messages hopped out of a lane that was not held", n)
		}
		time.Sleep(time.Minute)
		if got := bodies(in.all()); got != "" {
			t.Errorf("came while the lane was not held: %q", got)
		}
		f.held.Store(true)
		lease.beat <- struct{}{}
		synctest.Wait()
		if got := bodies(in.all()); got != "far held in memory unread" {
			t.Errorf("came when it was held again: %q", got)
		}
		f.held.Store(false) // before the commit
		time.Sleep(time.Minute)
		if n := pending(c, "DELAY_INTAKE"); n != 3 {
			t.Errorf("the lane has %d messages, want 3: it was not ours to commit", n)
		}
		f.held.Store(true)
		lease.beat <- struct{}{}
		time.Sleep(time.Second)
		if n := pending(c, "DELAY_INTAKE"); n != 0 {
			t.Errorf("the lane has %d messages, want none", n)
		}
		for round := range uint64(3) {
			close(lease.lost)
			if left := <-lease.left; left.Next != 4+round || left.Created.IsZero() {
				t.Errorf("left off at %+v, want %d", left, 4+round)
			}
			lease = <-f.lease
			c.publish("delayin.500ms.orders.x", fmt.Sprint("again ", round))
			time.Sleep(time.Second)
		}
		if got := bodies(in.all()); got != "again 0 again 1 again 2 far held in memory unread" {
			t.Errorf("came in the end: %q", got)
		}
	})
}

// doubting counts how often the broker asks it to check the ownership of lanes.
type doubting struct {
	lease.Static
	told atomic.Int64
}

func (d *doubting) Probe() { d.told.Add(1) }

// pending is the number of messages in a stream.
func pending(c *client, stream string) uint64 {
	c.t.Helper()
	return c.stream(stream).CachedInfo().State.Msgs
}

// TestRollingRestartLogsLittle: an instance that joins and leaves costs one line of the lanes that move, and the end of
// a pause is no news to an instance that starts afterwards.
func TestRollingRestartLogsLittle(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		logs := []*infoLog{{newCountingLog()}, {newCountingLog()}}
		configs := make([]broker.Config, len(logs))
		for i := range logs {
			configs[i] = member(t, 3)
			configs[i].Log = slog.New(logs[i])
		}
		startBroker(t, s, configs[0])
		o := operator(t, s)
		mustPause(t, o, "orders.>")
		mustResume(t, o, "orders.>")
		time.Sleep(time.Minute)
		startBroker(t, s, configs[1])
		time.Sleep(time.Minute)
		for _, want := range []struct {
			instance int
			line     string
			count    int
		}{
			{0, "handing lanes over to other instances", 1},
			{0, "handing a lane over", 0},
			{0, "no longer the owner of a lane", 0},
			{0, "what waited for a paused target is out", 1},
			{1, "what waited for a paused target is out", 0},
		} {
			if got := logs[want.instance].of(want.line); got != want.count {
				t.Errorf("instance %d logs %q %d times, want %d", want.instance, want.line, got, want.count)
			}
		}
	})
}

// infoLog counts the lines that are not for debugging.
type infoLog struct{ *countingLog }

func (l *infoLog) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }
func (l *infoLog) WithAttrs([]slog.Attr) slog.Handler               { return l }
func (l *infoLog) WithGroup(string) slog.Handler                    { return l }
