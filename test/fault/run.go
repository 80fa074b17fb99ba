//go:build linux

package fault

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"delaybroker/test/fault/history"
)

const (
	// bound is the maximum time from the end of a fault until all overdue messages have arrived. It is long enough for a
	// busy machine.
	bound = 30 * time.Second
	// lead is the minimum time for which a run publishes before, between and after faults. With shortGaps, it is half.
	lead = 2 * time.Second
	// A run needs at least rate/trafficDivisor publishes before, during and after a fault. With fewer, the fault proves
	// nothing. See history.Conditions.
	trafficDivisor = 4
)

type plan struct {
	name         string
	seed         uint64
	brokers      int
	rate         int           // publishes a second
	calmTime     time.Duration // additional time of publishing after each fault
	ladder       ladder
	home         int  // the number of the only server that brokers connect to, or 0 for all
	attack       bool // a tenant attacks during the whole run
	players      int  // number of players of named timers
	races        bool // all timers are due within 60 ms
	noHistory    bool // brokers keep no outcomes of timers, and the timers' stream must be empty at the end; takes minutes
	shortGaps    bool // shorter intervals between the faults
	fastRecovery bool // a third of the usual bound after a fault
	// ready is the maximum time of a broker's start, and late the maximum lateness; zero for no bound. See
	// history.Conditions.
	ready, late time.Duration
	faults      []fault
	programs    programs
}

func (p plan) conditions(c cluster) *history.Conditions {
	h := &history.Conditions{
		Name: p.name, Seed: p.seed, Brokers: p.brokers, Rate: p.rate, Players: p.players, Window: window, Bound: p.bound(),
		MinPublishes: p.rate / trafficDivisor, Clean: true, Ready: p.ready, Late: p.late,
	}
	for _, s := range c {
		h.Servers = append(h.Servers, s.name)
	}
	for _, f := range p.faults {
		h.Clean = h.Clean && f.clean
	}
	return h
}

// run executes the plan below dir and judges the history. It returns an error if the run could not be judged. Its files
// stay in dir if the run fails, and always if keep is set.
func (p plan) run(dir string, keep bool) (report *history.Report, err error) {
	if p.ladder.levels == "" {
		p.ladder = shortLadder
	}
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
	lead := lead
	if p.shortGaps {
		lead /= 2
	}
	for i, f := range p.faults {
		lead := lead
		if i > 0 {
			lead += p.calmTime
		}
		if err := w.awaitTraffic(p, lead+time.Duration(w.rand.Int64N(int64(lead)/4))); err != nil {
			return err
		}
		if err := w.inject(f); err != nil {
			return err
		}
	}
	if err := w.awaitTraffic(p, lead+p.calmTime); err != nil {
		return err
	}
	return w.finish()
}

// rest returns the maximum time until all lanes are empty.
func (p plan) rest() time.Duration {
	if p.noHistory {
		return bound + 3*time.Minute
	}
	return bound + max(farOff, p.ladder.longest())
}

// awaitTraffic waits for minTime, and then until enough messages were accepted.
func (w *world) awaitTraffic(p plan, minTime time.Duration) error {
	enough := w.accepted.Load() + int64(p.rate/trafficDivisor)
	time.Sleep(minTime)
	return await(timeout, func() error {
		if missing := enough - w.accepted.Load(); missing > 0 {
			return fmt.Errorf("too few messages were accepted, %d more are needed", missing)
		}
		return nil
	})
}

// bound returns the maximum lateness after the end of a fault.
func (p plan) bound() time.Duration {
	if p.fastRecovery {
		return bound / 3
	}
	return bound
}

// quota returns the storage limit of the run's account. The limit is low, so that a fault can fill the account in
// seconds. A run that publishes much has a higher limit.
func (p plan) quota() int {
	if p.rate > 1000 {
		return 8 * quota
	}
	return quota
}

// randomPlan returns a plan for the built programs, chosen by the seed and the number of brokers. About one run in four
// has only faults that excuse no duplicate. In about one run in four a tenant attacks. In about one run in three the
// brokers connect to one server only.
func randomPlan(seed uint64, brokers int, built programs) plan {
	r := rand.New(rand.NewPCG(seed, 2))
	p := plan{seed: seed, brokers: brokers, rate: 150 + 50*r.IntN(6), programs: built, ladder: shortLadder,
		shortGaps: true,
		players:   players}
	if r.IntN(3) == 0 {
		p.ladder = wideLadder
	}
	if r.IntN(3) == 0 {
		p.home = 1 + r.IntN(servers)
	}
	choice := faultsFor(brokers)
	if r.IntN(4) == 0 {
		choice = slices.DeleteFunc(choice, func(f fault) bool { return !f.clean })
	}
	p.attack = r.IntN(4) == 0
	for spent := time.Duration(0); spent < maxHeld || len(p.faults) < 2; {
		f := draw(r, choice)
		f.hold += time.Duration(r.Int64N(int64(time.Second)))
		p.faults = append(p.faults, f)
		spent += f.hold + f.extra
	}
	p.name = p.describe()
	return p
}

// maxHeld limits a random run: it gets faults until there are two, and their total duration is at least maxHeld.
const maxHeld = 12 * time.Second

func draw(r *rand.Rand, choice []fault) fault {
	sum := 0
	for _, f := range choice {
		sum += f.weight()
	}
	n := r.IntN(sum)
	for _, f := range choice {
		if n -= f.weight(); n < 0 {
			return f
		}
	}
	panic("unreachable: n is less than the sum of the weights")
}

func (p plan) describe() string {
	var names []string
	for _, f := range p.faults {
		names = append(names, f.name)
	}
	if p.attack {
		names = append(names, "attacked")
	}
	if p.home > 0 {
		names = append(names, fmt.Sprintf("all at n%d", p.home))
	}
	return strings.Join(names, ", ")
}
