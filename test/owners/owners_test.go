package owners

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"delaybroker/broker"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

func TestMain(m *testing.M) { harness.Main(m) }

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

// fleet is instances under load. The first one is active at the beginning.
type fleet struct {
	*harness.Client
	instances []*harness.Instance
	sent      int
}

func startFleet(t *testing.T, s *natstest.Server) *fleet {
	t.Helper()
	return newFleet(t, s, harness.StartBrokers(t, s, 3, harness.MemberConfig(t))...)
}

func newFleet(t *testing.T, s *natstest.Server, instances ...*harness.Instance) *fleet {
	t.Helper()
	f := &fleet{instances: instances, Client: harness.NewClient(t, s)}
	time.Sleep(10 * time.Second)
	harness.CheckActive(t, 0, f.instances...)
	f.Target("ORDERS", "orders.>")
	return f
}

// send publishes n times a message for each of mixedRoots, five times a second.
func (f *fleet) send(n int) {
	for range n {
		for _, root := range mixedRoots {
			f.Publish(root+".orders.x", fmt.Sprint(f.sent))
			f.sent++
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// TestTakeOverAfterCrash: the active one of three instances is killed under load. A stand-by delivers within 1.1 s. No
// message is lost or early, and the target's stream stores each once. The death of a stand-by has no effect.
func TestTakeOverAfterCrash(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	for seed := range 3 { // number of the instance that crashes
		natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
			f := startFleet(t, s)
			f.send(50)
			time.Sleep(time.Duration(seed) * 337 * time.Millisecond)
			f.instances[seed].Crash()
			f.send(100)
			time.Sleep(time.Minute)
			maxLate := time.Duration(0)
			if seed == 0 {
				maxLate = 1100 * time.Millisecond
			}
			if worst := checkPrompt(t, f.Arrivals("ORDERS"), f.sent, maxLate); seed == 0 && worst < 500*time.Millisecond {
				t.Errorf("the maximum lateness is %s, want at least 500ms after a crash", worst)
			}
			f.CheckNoDead()
		})
	}
}

// TestRollingRestart stops and replaces each of three instances under load. Each message arrives exactly once, and is
// late by at most 200 ms when another instance becomes active.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		f := startFleet(t, s)
		in := f.Subscribe("orders.>")
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			f.send(300)
		}()
		for n := range f.instances {
			time.Sleep(7*time.Second + time.Duration(n)*131*time.Millisecond)
			f.instances[n].Stop()
			time.Sleep(50 * time.Millisecond)
			if harness.Active(t, f.instances...) < 0 {
				t.Errorf("50ms after a stop, no instance is active")
			}
			time.Sleep(time.Second)
			f.instances[n] = harness.StartBroker(t, s, harness.MemberConfig(t))
		}
		<-stopped
		time.Sleep(time.Minute)
		checkPrompt(t, in.Arrivals(), f.sent, 200*time.Millisecond)
		f.CheckEmpty()
	})
}

// TestUncertainLease: while the lease is in doubt, the instance reads, delivers and commits no message. Afterwards it
// continues at the same position. An instance that has to release its lease waits for outstanding answers, hands over
// its position, and may become active again.
func TestUncertainLease(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		f := harness.NewUncertainLeaser()
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
			t.Errorf("%d messages hopped out of a lane while the lease was in doubt", n)
		}
		time.Sleep(time.Minute)
		harness.CheckBodies(t, in.Arrivals(), "")
		f.Valid.Store(true)
		lease.Resume <- struct{}{}
		time.Sleep(time.Second) // all lanes keep one order by due time, and wait for each other for at most a second
		synctest.Wait()
		harness.CheckBodies(t, in.Arrivals(), "far held in memory unread")
		f.Valid.Store(false) // before the commit
		time.Sleep(time.Minute)
		if n := harness.Pending(c, "DELAY_INTAKE"); n != 3 {
			t.Errorf("the lane has %d messages, want 3: the instance must not commit", n)
		}
		f.Valid.Store(true)
		lease.Resume <- struct{}{}
		time.Sleep(2 * time.Second)
		if n := harness.Pending(c, "DELAY_INTAKE"); n != 0 {
			t.Errorf("the lane has %d messages, want none", n)
		}
		for round := range uint64(3) {
			close(lease.Lost)
			if at := (<-lease.Released)["DELAY_INTAKE"]; at.Next != 4+round || at.Created.IsZero() {
				t.Errorf("got the cursor %+v, want %d", at, 4+round)
			}
			lease = <-f.Leases
			c.Publish("delayin.500ms.orders.x", fmt.Sprint("again ", round))
			time.Sleep(time.Second)
		}
		harness.CheckBodies(t, in.Arrivals(), "again 0 again 1 again 2 far held in memory unread")
	})
}

// TestJoinLogsLittle: when an instance joins, the active one logs nothing. An instance that starts after the end of a
// pause does not log the end.
func TestJoinLogsLittle(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		logs := []*infoLog{{harness.NewCountingLog()}, {harness.NewCountingLog()}}
		configs := make([]broker.Config, len(logs))
		for i := range logs {
			configs[i] = harness.MemberConfig(t)
			configs[i].Log = slog.New(logs[i])
		}
		harness.StartBroker(t, s, configs[0])
		o := harness.Operator(t, s)
		harness.MustPause(t, o, "orders.>")
		harness.MustResume(t, o, "orders.>")
		time.Sleep(time.Minute)
		before := logs[0].CountPrefix("")
		harness.StartBroker(t, s, configs[1])
		time.Sleep(time.Minute)
		const ended = "a pause has ended: no message is left in its lane"
		if got := logs[0].CountPrefix("") - before; got != 0 {
			t.Errorf("the active instance logs %d lines when another one joins, want none", got)
		}
		if first, second := logs[0].CountPrefix(ended), logs[1].CountPrefix(ended); first != 1 || second != 0 {
			t.Errorf("the end of the pause is logged %d and %d times, want 1 and 0", first, second)
		}
	})
}

// infoLog counts the log lines of at least the level info.
type infoLog struct{ *harness.CountingLog }

func (l *infoLog) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }
func (l *infoLog) WithAttrs([]slog.Attr) slog.Handler               { return l }
func (l *infoLog) WithGroup(string) slog.Handler                    { return l }
