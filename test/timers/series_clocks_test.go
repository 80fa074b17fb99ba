package timers

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/broker/timer/timetable"
	"delaybroker/test/harness"
	"delaybroker/test/harness/static"
	"delaybroker/test/natstest"
)

// TestSeriesThroughChangesOfClocks: a series has a cron expression in a zone whose local time goes back by an hour, and
// five weeks later forward. Of two instances, one is killed at a random moment: during a firing, shortly before or
// after it, or between two firings. Either one stands by, and takes over; or each
// instance owns all lanes. The target's stream stores each occurrence of the table once, and no occurrence early. The
// instances run only around the times of the table, including those that the local time skips.
func TestSeriesThroughChangesOfClocks(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			dir := natstest.Dir(t)
			natstest.DropTimers()
			synctest.Test(t, func(t *testing.T) {
				cfg := harness.TimerConfig(t)
				if cfg.Leaser = harness.Together; seed%2 == 1 {
					cfg.Leaser = static.Leaser{}
				}
				throughChangesOfClocks(t, dir, cfg, rand.New(rand.NewPCG(seed, 2)))
			})
		})
	}
}

func throughChangesOfClocks(t *testing.T, dir string, cfg broker.Config, random *rand.Rand) {
	t.Helper()
	const cron, zone = "*/12 1 * * *", "America/Santo_Domingo"
	day := func(month time.Month, day int) time.Time { return time.Date(2000, month, day, 6, 0, 0, 0, time.UTC) }
	back, forward := day(time.October, 29), day(time.December, 3) // the clocks go from 2:00 to 1:00, and from 1:00 to 2:00
	time.Sleep(time.Until(back.Add(-3 * time.Hour)))
	s := natstest.Run(t, dir)
	harness.StartBroker(t, s, cfg).Stop()
	c := harness.NewClient(t, s)
	c.Target("ORDERS", "orders.>")
	g := c.Publish("delaytimer.k.orders.x", "body", "Delay-Cron", cron, "Delay-Time-Zone", zone,
		"Delay-Missed-Rounds", "skip").Sequence
	table, err := timetable.Parse(timetable.Settings{Cron: cron, Zone: zone})
	natstest.NoError(t, err)
	var want []time.Time
	var got []harness.Arrival
	for _, change := range []time.Time{back, forward} {
		c.NC.Close()
		s.Stop() // the periodic work of a server for five weeks would take long
		time.Sleep(time.Until(change.Add(-62 * time.Minute)))
		s.Start()
		c = harness.NewClient(t, s)
		in := c.Subscribe("orders.>")
		k := killer{Client: c, server: s, cfg: cfg, random: random}
		for at := change.Add(-time.Hour); at.Before(change.Add(time.Hour)); at = at.Add(12 * time.Minute) {
			next, _ := table.Next(time.Time{}, at.Add(-1))
			if next.Equal(at) {
				want = append(want, at)
			}
			k.live(at, next.Equal(at))
		}
		got = append(got, in.Arrivals()...)
	}
	checkOccurrences(t, got, strconv.FormatUint(g, 10), want)
	if n := harness.Pending(c, "ORDERS"); n != uint64(len(want)) {
		t.Errorf("the target's stream has %d messages, want %d", n, len(want))
	}
	for _, at := range want {
		if !at.Before(back) && at.Before(back.Add(time.Hour)) {
			t.Errorf("the table repeats an occurrence of the repeated hour at %s", at)
		}
	}
	if !slices.ContainsFunc(want, forward.Equal) || len(want) != 5+1 {
		t.Errorf("want %d occurrences: %v", len(want), want)
	}
	c.CheckNoDead()
}

// killer runs two instances for some time, and kills one of them.
type killer struct {
	*harness.Client
	server *natstest.Server
	cfg    broker.Config
	random *rand.Rand
}

// live runs the instances around a time. If a round is due at the time, live kills one instance at a random moment: in
// the half minute before, within a second of the time, or at one of the instance's next writes, which is between two
// steps of a firing.
func (k *killer) live(at time.Time, fires bool) {
	k.T.Helper()
	time.Sleep(time.Until(at.Add(-40 * time.Second)))
	dialer := &mortal{Server: k.server, dead: make(chan struct{})}
	dialer.left.Store(math.MaxInt64)
	victim := harness.StartBroker(k.T, k.server, k.cfg, nats.SetCustomDialer(dialer))
	other := harness.StartBroker(k.T, k.server, k.cfg)
	if fires {
		before := time.Duration(k.random.Int64N(int64(30 * time.Second)))
		switch k.random.IntN(6) {
		case 0:
			time.Sleep(time.Until(at.Add(-before)))
		case 1:
			time.Sleep(time.Until(at.Add(before%(2*time.Second) - time.Second)))
		default:
			time.Sleep(time.Until(at) - 1)
			dialer.left.Store(1 + k.random.Int64N(16))
			select {
			case <-dialer.dead:
			case <-time.After(time.Second):
			}
		}
		victim.Crash()
		time.Sleep(before % (20 * time.Second)) // only the other instance runs
		victim = harness.StartBroker(k.T, k.server, k.cfg)
	}
	time.Sleep(time.Until(at.Add(30 * time.Second)))
	victim.Stop()
	other.Stop()
}

// mortal makes the connections of an instance that crashes between two writes. They send no later write.
type mortal struct {
	*natstest.Server
	left atomic.Int64  // number of writes until the death
	dead chan struct{} // closed at the death
}

func (m *mortal) Dial(network, address string) (net.Conn, error) {
	nc, err := m.Server.Dial(network, address)
	return mortalConn{nc, m}, err
}

type mortalConn struct {
	net.Conn
	of *mortal
}

func (c mortalConn) Write(b []byte) (int, error) {
	switch left := c.of.left.Add(-1); {
	case left == 0:
		close(c.of.dead)
		fallthrough
	case left < 0:
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// checkOccurrences expects these occurrences in order, each under one id, not early, and numbered from 1.
func checkOccurrences(t *testing.T, got []harness.Arrival, series string, want []time.Time) {
	t.Helper()
	n, seen := 0, make(map[string]bool)
	for _, a := range got {
		if seen[a.ID] {
			continue // a duplicate, of which the stream stored the first
		}
		seen[a.ID] = true
		if n >= len(want) {
			t.Fatalf("at %s arrived one more: %s", a.At, a.ID)
		}
		if !a.Due.Equal(want[n]) || a.At.Before(a.Due) || a.Header.Get("Delay-Round") != strconv.Itoa(n+1) ||
			a.Header.Get("Delay-Series") != series {
			t.Fatalf("round %[2]s, due %[3]s, arrived at %[1]s; want round %[4]d, due %[5]s", a.At,
				a.Header.Get("Delay-Round"), a.Due, n+1,
				want[n])
		}
		n++
	}
	if n != len(want) {
		t.Errorf("%d occurrences arrived, want %d", n, len(want))
	}
}
