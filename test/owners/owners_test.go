package owners

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"delaybroker/broker"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

func TestMain(m *testing.M) { harness.Main(m) }

// TestInstancesShare: instances join one by one. Seconds later, the numbers of their lanes differ by at most one.
// Instances beyond DELAY_MAX_OWNERS stand by until another instance leaves.
func TestInstancesShare(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		start := time.Now()
		a := harness.StartBroker(t, s, harness.MemberConfig(t, 3))
		if took := time.Since(start); took > time.Second {
			t.Errorf("the first instance was ready after %s, want 0s", took)
		}
		harness.CheckOwned(t, []int{harness.MemberLanes}, a)
		b := harness.StartBroker(t, s, harness.MemberConfig(t, 3))
		time.Sleep(3 * time.Second)
		harness.CheckOwned(t, []int{0, harness.MemberLanes}, a, b)
		time.Sleep(2 * time.Second)
		harness.CheckOwned(t, []int{5, 5}, a, b)
		c := harness.StartBroker(t, s, harness.MemberConfig(t, 3))
		d := harness.StartBroker(t, s, harness.MemberConfig(t, 3))
		time.Sleep(7 * time.Second)
		harness.CheckOwned(t, []int{0, 3, 3, 4}, a, b, c, d)
		c.Stop()
		harness.CheckOwned(t, []int{3, 3, 4}, a, b, d)
		a.Stop()
		harness.CheckOwned(t, []int{5, 5}, b, d)
		b.Stop()
		harness.CheckOwned(t, []int{harness.MemberLanes}, d)
	})
}

// TestOwnersShareLanes runs two instances that own different lanes by configuration (lease.Static). Together they
// deliver all messages, and no instance reads the other's lanes.
func TestOwnersShareLanes(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		l := harness.Ladder(t, "1s 10s 1m 10m")
		a := harness.StartBroker(t, s,
			broker.Config{Ladder: l, Leaser: harness.StaticLeaser("DELAY_INTAKE", "DELAY_10s", "DELAY_10m")})
		b := harness.StartBroker(t, s, broker.Config{Ladder: l,
			Leaser: harness.StaticLeaser("DELAY_1s", "DELAY_1m", "DELAY_RETRY_1s", "DELAY_RETRY_5s", "DELAY_RETRY_30s")})
		const want = "DELAY_INTAKE DELAY_10s DELAY_10m | " +
			"DELAY_1s DELAY_1m DELAY_RETRY_1s DELAY_RETRY_5s DELAY_RETRY_30s"
		if got := harness.OwnedLanes(a) + " | " + harness.OwnedLanes(b); got != want {
			t.Errorf("they own %s, want %s", got, want)
		}
		c := harness.NewClient(t, s)
		in := c.Subscribe("orders.>")
		start := time.Now()
		c.Publish("delayin.11m11s.orders.x", "chained") // a owns 10m and 10s, b owns 1m
		c.Publish("delay.1s.orders.x", "second")
		harness.CheckExactly(t, in, start.Add(time.Second), 0)
		harness.CheckExactly(t, in, start.Add(11*time.Minute+11*time.Second), 1)
		for _, name := range []string{"DELAY_INTAKE", "DELAY_1s", "DELAY_1m", "DELAY_10m"} {
			st := c.Stream(name)
			if got := st.CachedInfo().State.Consumers; got != 1 {
				t.Errorf("%s has %d consumers, want only that of its owner", name, got)
			}
		}
		b.Stop()
		c.Publish("delay.1s.orders.x", "orphan")
		time.Sleep(time.Hour)
		harness.CheckBodies(t, in.Arrivals(), "chained second")
		harness.StartBroker(t, s, broker.Config{Ladder: l, Leaser: harness.StaticLeaser("DELAY_1s")})
		synctest.Wait()
		harness.CheckBodies(t, in.Arrivals(), "chained orphan second")
	})
}

// mixedRoots has beginnings of request subjects, which together use several levels, hops, the intake and the wheel.
var mixedRoots = []string{"delay.1s", "delay.5s", "delay.10s", "delayin.1700ms", "delayin.16s", "delay.30s"}

// checkPrompt expects this number of messages, each once, not early, and late by at most a maximum. It returns the
// maximum lateness of the messages.
func checkPrompt(t *testing.T, got []harness.Arrival, count int, maxLate time.Duration) (worst time.Duration) {
	t.Helper()
	harness.CheckCount(t, got, count)
	ids := make(map[string]bool)
	for _, a := range got {
		if a.At.Before(a.Due) || ids[a.ID] {
			t.Errorf("%s arrived %s early, or twice", a.Body, a.Due.Sub(a.At))
		}
		ids[a.ID] = true
		worst = max(worst, a.At.Sub(a.Due))
	}
	if worst > maxLate {
		t.Errorf("the maximum lateness of %d messages is %s, want at most %s", count, worst, maxLate)
	}
	t.Logf("the maximum lateness of %d messages is %s", count, worst)
	return worst
}

// TestTakeOverAfterCrash: one of three instances crashes under load. Six seconds later, every overdue message has been
// delivered. No message is lost or early, and each is stored once.
func TestTakeOverAfterCrash(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	for seed := range 3 { // number of the instance that crashes
		natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
			instances := harness.StartBrokers(t, s, 3, harness.MemberConfig(t, 3))
			time.Sleep(10 * time.Second)
			harness.CheckOwned(t, []int{3, 3, 4}, instances...)
			c := harness.NewClient(t, s)
			c.Target("ORDERS", "orders.>")
			sent := 0
			send := func(n int) {
				for range n {
					for _, root := range mixedRoots {
						c.Publish(root+".orders.x", fmt.Sprint(sent))
						sent++
					}
					time.Sleep(200 * time.Millisecond)
				}
			}
			send(50)
			time.Sleep(time.Duration(seed) * 337 * time.Millisecond)
			crashed := time.Now()
			instances[seed].Crash()
			send(100)
			time.Sleep(time.Minute)
			got := c.Arrivals("ORDERS")
			for _, a := range got {
				if a.At.Before(crashed) && a.At.After(a.Due) {
					t.Errorf("%s arrived %s late, before the crash", a.Body, a.At.Sub(a.Due))
				}
			}
			if worst := checkPrompt(t, got, sent, 6*time.Second); worst < 3*time.Second {
				t.Errorf("the maximum lateness is %s, want at least 3s after a crash", worst)
			}
			c.CheckNoDead()
		})
	}
}

// TestRollingRestart stops and replaces each of three instances under load. Each message arrives exactly once, and is
// late by at most 200 ms while its lane changes its owner.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		instances := harness.StartBrokers(t, s, 3, harness.MemberConfig(t, 3))
		time.Sleep(10 * time.Second)
		c := harness.NewClient(t, s)
		in := c.Subscribe("orders.>")
		sent, stopped := 0, make(chan struct{})
		go func() {
			defer close(stopped)
			for range 300 {
				for _, root := range mixedRoots {
					c.Publish(root+".orders.x", fmt.Sprint(sent))
					sent++
				}
				time.Sleep(200 * time.Millisecond)
			}
		}()
		for n := range instances {
			time.Sleep(7*time.Second + time.Duration(n)*131*time.Millisecond)
			instances[n].Stop()
			harness.CheckOwned(t, []int{5, 5}, slices.Delete(slices.Clone(instances), n, n+1)...)
			time.Sleep(time.Second)
			instances[n] = harness.StartBroker(t, s, harness.MemberConfig(t, 3))
		}
		<-stopped
		time.Sleep(time.Minute)
		harness.CheckOwned(t, []int{3, 3, 4}, instances...)
		checkPrompt(t, in.Arrivals(), sent, 200*time.Millisecond)
		c.CheckEmpty()
	})
}

// TestUncertainOwnerStops: while the lease of a lane is in doubt, its owner reads, delivers and commits no message of
// the lane. Afterwards the owner continues at the same position. An owner that has to release the lane waits for
// outstanding answers, hands over its position, and may acquire the lane again.
func TestUncertainOwnerStops(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		f := harness.NewUncertainLeaser("DELAY_INTAKE")
		harness.StartBroker(t, s, broker.Config{Ladder: harness.Ladder(t, "1s 10s"), Leaser: f})
		lease := <-f.Leases
		c := harness.NewClient(t, s)
		in := c.Subscribe("orders.>")
		c.Publish("delayin.500ms.orders.x", "held in memory")
		time.Sleep(100 * time.Millisecond)
		f.Valid.Store(false)
		c.Publish("delayin.500ms.orders.x", "unread")
		c.Publish("delayin.5s.orders.x", "far")
		time.Sleep(100 * time.Millisecond)
		if n := harness.Pending(c, "DELAY_1s"); n != 0 {
			t.Errorf("%d messages hopped out of a lane whose lease was in doubt", n)
		}
		time.Sleep(time.Minute)
		harness.CheckBodies(t, in.Arrivals(), "")
		f.Valid.Store(true)
		lease.Tick <- struct{}{}
		synctest.Wait()
		harness.CheckBodies(t, in.Arrivals(), "far held in memory unread")
		f.Valid.Store(false) // before the commit
		time.Sleep(time.Minute)
		if n := harness.Pending(c, "DELAY_INTAKE"); n != 3 {
			t.Errorf("the lane has %d messages, want 3: the owner must not commit", n)
		}
		f.Valid.Store(true)
		lease.Tick <- struct{}{}
		time.Sleep(time.Second)
		if n := harness.Pending(c, "DELAY_INTAKE"); n != 0 {
			t.Errorf("the lane has %d messages, want none", n)
		}
		for round := range uint64(3) {
			close(lease.Lost)
			if cursor := <-lease.Released; cursor.Next != 4+round || cursor.Created.IsZero() {
				t.Errorf("got the cursor %+v, want %d", cursor, 4+round)
			}
			lease = <-f.Leases
			c.Publish("delayin.500ms.orders.x", fmt.Sprint("again ", round))
			time.Sleep(time.Second)
		}
		harness.CheckBodies(t, in.Arrivals(), "again 0 again 1 again 2 far held in memory unread")
	})
}

// TestRollingRestartLogsLittle: when an instance joins, the earlier owner logs one line about all moved lanes. An
// instance that starts after the end of a pause does not log the end.
func TestRollingRestartLogsLittle(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		logs := []*infoLog{{harness.NewCountingLog()}, {harness.NewCountingLog()}}
		configs := make([]broker.Config, len(logs))
		for i := range logs {
			configs[i] = harness.MemberConfig(t, 3)
			configs[i].Log = slog.New(logs[i])
		}
		harness.StartBroker(t, s, configs[0])
		o := harness.Operator(t, s)
		harness.MustPause(t, o, "orders.>")
		harness.MustResume(t, o, "orders.>")
		time.Sleep(time.Minute)
		harness.StartBroker(t, s, configs[1])
		time.Sleep(time.Minute)
		for _, want := range []struct {
			instance int
			line     string
			count    int
		}{
			{0, "handing lanes over to other instances", 1},
			{0, "handing a lane over", 0},
			{0, "this instance is no longer the owner of a lane", 0},
			{0, "a pause has ended: no message is left in its lane", 1},
			{1, "a pause has ended: no message is left in its lane", 0},
		} {
			if got := logs[want.instance].CountPrefix(want.line); got != want.count {
				t.Errorf("instance %d logs %q %d times, want %d", want.instance, want.line, got, want.count)
			}
		}
	})
}

// infoLog counts the log lines of at least the level info.
type infoLog struct{ *harness.CountingLog }

func (l *infoLog) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }
func (l *infoLog) WithAttrs([]slog.Attr) slog.Handler               { return l }
func (l *infoLog) WithGroup(string) slog.Handler                    { return l }
