package test

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"delaybroker/broker"
	"delaybroker/broker/lease"
	"delaybroker/broker/timetable"
	"delaybroker/test/natstest"
)

// TestSeriesThroughChangesOfClocks: a cron in a zone whose clocks go back, and five weeks later forward, with two
// instances that both believe that all is theirs, and are killed at random, often while they fire: each occurrence is
// stored once by its target, none early, and all are those of the table. Between the two changes nobody runs.
func TestSeriesThroughChangesOfClocks(t *testing.T) {
	t.Parallel()
	const cron, zone = "*/5 1 * * *", "America/Santo_Domingo"
	dir := t.TempDir()
	natstest.DropTimers()
	synctest.Test(t, func(t *testing.T) {
		day := func(month time.Month, day int) time.Time { return time.Date(2000, month, day, 6, 0, 0, 0, time.UTC) }
		back, forward := day(time.October, 29), day(time.December, 3) // at 2:00, to 1:00; and at 1:00, to 2:00
		time.Sleep(time.Until(back.Add(-3 * time.Hour)))
		s := natstest.Run(t, dir)
		cfg := timersOn(t)
		cfg.Leaser = lease.Static{}
		startBroker(t, s, cfg).stop()
		c := newClient(t, s)
		c.target("ORDERS", "orders.>")
		g := c.publish("delaytimer.k.orders.x", "body", "Delay-Cron", cron, "Delay-Time-Zone", zone,
			"Delay-Missed-Rounds", "skip").Sequence
		table, err := timetable.Parse(timetable.Words{Cron: cron, Zone: zone})
		if err != nil {
			t.Fatal(err)
		}
		random := rand.New(rand.NewPCG(1, 2))
		var want []time.Time
		var got []arrival
		for _, change := range []time.Time{back, forward} {
			c.nc.Close()
			s.Stop() // five weeks of a server's own work are much
			time.Sleep(time.Until(change.Add(-62 * time.Minute)))
			s.Start()
			c = newClient(t, s)
			in := c.subscribe("orders.>")
			end := change.Add(62 * time.Minute)
			all := []*instance{startBroker(t, s, cfg), startBroker(t, s, cfg)}
			for at, _ := table.After(time.Time{}, time.Now()); at.Before(end); at, _ = table.After(time.Time{}, at) {
				want = append(want, at)
				time.Sleep(time.Until(at) - time.Second)
				killAround(t, s, cfg, all, random)
			}
			time.Sleep(time.Until(end))
			all[0].stop()
			all[1].stop()
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
		if !slices.ContainsFunc(want, forward.Equal) || len(want) != 12+1 {
			t.Errorf("want %d occurrences: %v", len(want), want)
		}
		c.checkNoDead()
	})
}

// killAround kills one of the instances within a second of a firing, or leaves them alone, and starts another.
func killAround(t *testing.T, s *natstest.Server, cfg broker.Config, all []*instance, random *rand.Rand) {
	t.Helper()
	victim := random.IntN(2 * len(all))
	if victim >= len(all) {
		return
	}
	time.Sleep(time.Second + time.Duration(random.IntN(5)-1)*time.Duration(random.IntN(50))*time.Millisecond)
	all[victim].crash()
	all[victim] = startBroker(t, s, cfg)
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
