//go:build linux

package fault

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"delaybroker/test/fault/history"
)

const (
	// bound is how long after the end of a fault everything overdue must have arrived, on a busy machine.
	bound = 30 * time.Second
	// lead is how long a run publishes before, between and after faults.
	lead = 2 * time.Second
	// least is the part of a second's messages below which a fault shows nothing.
	least = 4
)

// plan is a run before it happens.
type plan struct {
	name     string
	seed     uint64
	brokers  int
	rate     int           // publishes a second
	calm     time.Duration // published after the last fault, beyond the usual
	faults   []fault
	programs programs
}

func (p plan) conditions(c cluster) *history.Conditions {
	h := &history.Conditions{
		Name: p.name, Seed: p.seed, Brokers: p.brokers, Rate: p.rate, Window: window, Bound: bound,
		Least: p.rate / least, Clean: true,
	}
	for _, s := range c {
		h.Servers = append(h.Servers, s.name)
	}
	for _, f := range p.faults {
		h.Clean = h.Clean && f.clean
	}
	return h
}

// run makes it happen below dir and judges it. An error is a run that came to no judgement. What it leaves stays in dir
// when it fails, and always if keep is set.
func (p plan) run(dir string, keep bool) (report *history.Report, err error) {
	dir, err = os.MkdirTemp(dir, fmt.Sprintf("fault-%d-", p.seed))
	if err != nil {
		return nil, err
	}
	w, err := newWorld(p, dir)
	if err == nil {
		err = w.runFaults(p)
	}
	w.end()
	if err == nil {
		report = history.Check(w.log.Events())
		if len(report.Violations) == 0 && !keep {
			return report, os.RemoveAll(dir)
		}
	}
	path, saveErr := w.save()
	if err == nil {
		err = saveErr
	}
	if err != nil {
		return nil, fmt.Errorf("%s, seed %d, kept in %s: %w", p.name, p.seed, dir, err)
	}
	report.Kept = path
	return report, nil
}

func (w *world) runFaults(p plan) error {
	for _, f := range p.faults {
		if err := w.awaitTraffic(p, lead+time.Duration(w.rand.Int64N(int64(lead)/4))); err != nil {
			return err
		}
		if err := w.inject(f); err != nil {
			return err
		}
	}
	if err := w.awaitTraffic(p, lead+p.calm); err != nil {
		return err
	}
	return w.finish()
}

// awaitTraffic lets the publishers work for a while, and on until enough was accepted.
func (w *world) awaitTraffic(p plan, leastTime time.Duration) error {
	enough := w.accepted.Load() + int64(p.rate/least)
	time.Sleep(leastTime)
	return await(patience, func() error {
		if missing := enough - w.accepted.Load(); missing > 0 {
			return fmt.Errorf("too little is accepted: %d are missing", missing)
		}
		return nil
	})
}

// randomPlan follows from the seed alone: one run in four is of faults that excuse no copy.
func randomPlan(seed uint64, brokers int, built programs) plan {
	r := rand.New(rand.NewPCG(seed, 2))
	p := plan{seed: seed, brokers: brokers, rate: 150 + 50*r.IntN(6), programs: built}
	choice := faultsFor(brokers)
	if r.IntN(4) == 0 {
		choice = cleanFaults()
	}
	var names []string
	for range 2 + r.IntN(4) {
		f := choice[r.IntN(len(choice))]
		f.hold += time.Duration(r.Int64N(int64(time.Second)))
		p.faults = append(p.faults, f)
		names = append(names, f.name)
	}
	p.name = strings.Join(names, ", ")
	return p
}
