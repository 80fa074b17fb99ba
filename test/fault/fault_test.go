//go:build linux

package fault

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"delaybroker/test/fault/history"
)

var (
	duration = flag.Duration("fault.duration", 0, "run random faults for so long, rather than each kind once")
	seed     = flag.Uint64("fault.seed", 0, "seed of the first random run; alone, that run and no other")
	keep     = flag.String("fault.keep", "", "where every run leaves its history, logs and data; without it, those that fail leave them in the temporary directory")
	brokers  = flag.Int("fault.brokers", 3, "how many brokers share the work")
	other    = flag.String("fault.broker", "", "the command to break, rather than this tree's, such as an older version")
	only     = flag.String("fault.only", "", "the faults of a single run, by name, separated by commas")
	broken   = flag.Bool("fault.mutants", false, "run brokers that are broken on purpose, too")
)

// built are the programs under test.
var built programs

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "fault-programs-")
		if err == nil {
			defer os.RemoveAll(dir)
			built, err = buildPrograms(dir, *other)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}())
}

// totals are what many runs came to.
type totals struct {
	mu                                                              sync.Mutex
	runs, acked, delivered, recovered, lost, early, repeats, copies int

	cleanRuns, cleanRepeats int
}

func (s *totals) add(r *history.Report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs++
	s.acked += r.Acked
	s.delivered += r.Delivered
	s.recovered += r.Recovered
	s.lost += r.Lost
	s.early += r.Count(history.Early)
	s.repeats += r.Repeats
	s.copies += r.Copies
	if r.Conditions.Clean {
		s.cleanRuns++
		s.cleanRepeats += r.Repeats
	}
}

func (s *totals) String() string {
	return fmt.Sprintf("%d runs: %d acknowledged, %d delivered (%d of them not acknowledged), %d lost, %d early, %d sent again, %d stored twice; %d of the runs were clean stops: %d sent again",
		s.runs, s.acked, s.delivered, s.recovered, s.lost, s.early, s.repeats, s.copies, s.cleanRuns, s.cleanRepeats)
}

// TestFaults breaks things under load. Nothing that was accepted is lost or early, the target's stream holds one copy of
// each on every server, and a clean stop does not even send two.
func TestFaults(t *testing.T) {
	var sum totals
	t.Cleanup(func() { t.Log(&sum) })
	run := func(t *testing.T, p plan) {
		report, err := p.run(*keep, *keep != "")
		if err != nil {
			t.Fatal(err)
		}
		sum.add(report)
		t.Log(report)
		if len(report.Violations) > 0 {
			t.Errorf("%d violations; judge again with: go run ./test/fault/check %s", len(report.Violations), report.Kept)
		}
	}
	switch {
	case *only != "":
		faults, err := faultsNamed(strings.Split(*only, ","))
		if err != nil {
			t.Fatal(err)
		}
		run(t, plan{name: *only, seed: *seed, brokers: *brokers, rate: 300, programs: built, faults: faults})
	case *duration > 0 || *seed > 0:
		first := *seed
		if first == 0 {
			first = uint64(time.Now().UnixNano())
		}
		end := time.Now().Add(*duration)
		for next := first; next == first || time.Now().Before(end); next++ {
			p := randomPlan(next, *brokers, built)
			t.Run(p.name, func(t *testing.T) { run(t, p) })
		}
	default:
		for _, p := range eachFault() {
			t.Run(p.name, func(t *testing.T) {
				t.Parallel() // a run mostly waits
				run(t, p)
			})
		}
	}
}

// eachFault is a few runs that hold every kind of fault, the longest first.
func eachFault() []plan {
	all := []plan{
		{name: "servers", seed: 3, brokers: *brokers, rate: 200, programs: built, faults: []fault{leaderKilled, serverPaused, steppedDown, serverCut}},
		{name: "clusters", seed: 4, brokers: *brokers, rate: 200, programs: built, faults: []fault{serversRolling, serversKilled, allKilled}},
		{name: "administrators", seed: 5, brokers: *brokers, rate: 200, programs: built, faults: []fault{laneReplaced, idsForged, storeFull}},
		{name: "brokers", seed: 2, brokers: *brokers, rate: 300, programs: built, faults: []fault{brokerKilled, brokerBlink, brokerPaused, brokerReset, brokerCut}},
		{name: "clean stops", seed: 1, brokers: *brokers, rate: 300, programs: built, faults: []fault{brokersRolling, brokerStopped}},
	}
	if *brokers > 1 { // there is somebody to take over
		all[2].faults = append(all[2].faults, brokerLost)
	}
	return all
}

// BenchmarkRolling restarts all brokers one after the other under load, beside a run in which nothing happens.
func BenchmarkRolling(b *testing.B) {
	calm := plan{name: "undisturbed", seed: 1, brokers: *brokers, rate: 999, programs: built, calm: 10 * time.Second}
	rolling := calm
	rolling.name, rolling.faults = "rolling restart", []fault{brokersRolling, brokersRolling, brokersRolling}
	benchmark(b, calm)
	benchmark(b, rolling)
}

// BenchmarkTakeOver kills a broker for longer than the others wait for it, then one together with the server that leads
// their bucket.
func BenchmarkTakeOver(b *testing.B) {
	p := plan{name: "broker killed", seed: 1, brokers: *brokers, rate: 300, programs: built, faults: []fault{brokerLost}}
	benchmark(b, p)
	p.name, p.faults = "broker and bucket leader killed", []fault{ownersLost}
	benchmark(b, p)
}

// benchmark makes a run and prints its lateness.
func benchmark(b *testing.B, p plan) {
	b.Run(p.name, func(b *testing.B) {
		for b.Loop() {
			report, err := p.run(*keep, *keep != "")
			if err != nil {
				b.Fatal(err)
			}
			b.Log(report)
			if len(report.Violations) > 0 {
				b.Errorf("%d violations; judge again with: go run ./test/fault/check %s", len(report.Violations), report.Kept)
			}
			b.ReportMetric(float64(report.Median)/1e6, "p50-ms-late")
			b.ReportMetric(float64(report.P99)/1e6, "p99-ms-late")
			b.ReportMetric(float64(report.Worst)/1e6, "max-ms-late")
			b.ReportMetric(float64(report.Repeats), "sent-again")
		}
	})
}
