package test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/broker/lease"
	"delaybroker/broker/timetable"
	"delaybroker/test/natstest"
)

// TestSeriesThroughChangesOfClocks: a cron in a zone whose clocks go back, and five weeks later forward, with two
// instances, one of which is killed at random: at any step of a firing, about it, or between two. They share the lanes,
// so that the other takes over; or both believe that all is theirs. Each occurrence is stored once by its target, none
// early, and all are those of the table. Instances run only about the times at which the clock shows, or skips, what
// the table says.
func TestSeriesThroughChangesOfClocks(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			natstest.DropTimers()
			synctest.Test(t, func(t *testing.T) {
				cfg := timersOn(t)
				if cfg.MaxOwners = 2; seed%2 == 1 {
					cfg.MaxOwners, cfg.Leaser = 0, lease.Static{}
				}
				throughChangesOfClocks(t, dir, cfg, rand.New(rand.NewPCG(seed, 2)))
			})
		})
	}
}

func throughChangesOfClocks(t *testing.T, dir string, cfg broker.Config, random *rand.Rand) {
	t.Helper()
	const cron, zone = "*/20 1 * * *", "America/Santo_Domingo"
	day := func(month time.Month, day int) time.Time { return time.Date(2000, month, day, 6, 0, 0, 0, time.UTC) }
	back, forward := day(time.October, 29), day(time.December, 3) // at 2:00, to 1:00; and at 1:00, to 2:00
	time.Sleep(time.Until(back.Add(-3 * time.Hour)))
	s := natstest.Run(t, dir)
	startBroker(t, s, cfg).stop()
	c := newClient(t, s)
	c.target("ORDERS", "orders.>")
	g := c.publish("delaytimer.k.orders.x", "body", "Delay-Cron", cron, "Delay-Time-Zone", zone,
		"Delay-Missed-Rounds", "skip").Sequence
	table, err := timetable.Parse(timetable.Words{Cron: cron, Zone: zone})
	if err != nil {
		t.Fatal(err)
	}
	var want []time.Time
	var got []arrival
	for _, change := range []time.Time{back, forward} {
		c.nc.Close()
		s.Stop() // five weeks of a server's own work are much
		time.Sleep(time.Until(change.Add(-62 * time.Minute)))
		s.Start()
		c = newClient(t, s)
		in := c.subscribe("orders.>")
		k := killer{client: c, server: s, cfg: cfg, random: random}
		for at := change.Add(-time.Hour); at.Before(change.Add(time.Hour)); at = at.Add(20 * time.Minute) {
			if next, _ := table.After(time.Time{}, at.Add(-1)); next.Equal(at) {
				want = append(want, at)
			}
			k.kill(at)
		}
		got = append(got, in.all()...)
	}
	checkOccurrences(t, got, strconv.FormatUint(g, 10), want)
	if n := pending(c, "ORDERS"); n != uint64(len(want)) {
		t.Errorf("the target has stored %d, want %d", n, len(want))
	}
	for _, at := range want { // an hour that comes twice, and one that is skipped
		if !at.Before(back) && at.Before(back.Add(time.Hour)) {
			t.Errorf("%s comes twice, and ran again", at)
		}
	}
	if !slices.ContainsFunc(want, forward.Equal) || len(want) != 3+1 {
		t.Errorf("want %d occurrences: %v", len(want), want)
	}
	c.checkNoDead()
}

// killer runs two instances for a while, of which it kills one.
type killer struct {
	*client
	server *natstest.Server
	cfg    broker.Config
	random *rand.Rand
}

// kill runs them about a time, and kills at random: when so many messages have passed the server since then, which is
// between any two steps of a firing; within a second of it; or in the half minute before. One time in six nobody dies.
func (k *killer) kill(at time.Time) {
	k.t.Helper()
	time.Sleep(time.Until(at.Add(-40 * time.Second)))
	all := []*instance{startBroker(k.t, k.server, k.cfg), startBroker(k.t, k.server, k.cfg)}
	victim, before := k.random.IntN(len(all)), time.Duration(k.random.Int64N(int64(30*time.Second)))
	how := k.random.IntN(6)
	switch how {
	case 0:
	case 1:
		time.Sleep(time.Until(at.Add(-before)))
	case 2:
		time.Sleep(time.Until(at.Add(-before % time.Second)))
	case 3:
		time.Sleep(time.Until(at.Add(before % time.Second)))
	default:
		k.awaitStep(at, 1+k.random.IntN(12))
	}
	if how > 0 {
		all[victim].crash()
		time.Sleep(before % (20 * time.Second)) // the other is alone
		all[victim] = startBroker(k.t, k.server, k.cfg)
	}
	time.Sleep(time.Until(at.Add(30 * time.Second)))
	all[0].stop()
	all[1].stop()
}

// awaitStep waits until a time, and then until so many messages have passed the server, a second at most.
func (k *killer) awaitStep(at time.Time, n int) {
	k.t.Helper()
	time.Sleep(time.Until(at) - 1)
	passed := make(chan struct{}, 64)
	sub, err := k.nc.Subscribe(">", func(*nats.Msg) {
		select {
		case passed <- struct{}{}:
		default:
		}
	})
	if err != nil {
		k.t.Fatal(err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	for end := time.After(time.Second); n > 0; n-- {
		select {
		case <-passed:
		case <-end:
			return
		}
	}
}

// checkOccurrences: each arrived once for certain, by its id; none early, in order, with numbers without a gap.
func checkOccurrences(t *testing.T, got []arrival, series string, want []time.Time) {
	t.Helper()
	n, seen := 0, make(map[string]bool)
	for _, a := range got {
		if seen[a.ID] {
			continue // a copy under the same id: the stream has stored it once
		}
		seen[a.ID] = true
		if n >= len(want) {
			t.Fatalf("at %s came one more: %s", a.At, a.ID)
		}
		if !a.Due.Equal(want[n]) || a.At.Before(a.Due) || a.Header.Get("Delay-Round") != strconv.Itoa(n+1) ||
			a.Header.Get("Delay-Series") != series {
			t.Fatalf("at %s came round %s, due %s; want round %d, due %s", a.At, a.Header.Get("Delay-Round"), a.Due, n+1,
				want[n])
		}
		n++
	}
	if n != len(want) {
		t.Errorf("%d occurrences arrived, want %d", n, len(want))
	}
}
