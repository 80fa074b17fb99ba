//go:build linux

package fault

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"delaybroker/test/natstest"
)

var (
	duration = flag.Duration("fault.duration", 0, "run random faults for this long, instead of the usual faults once")
	seed     = flag.Uint64("fault.seed", 0,
		"seed of the first random run; the only run without -fault.duration and -fault.runs")
	runs = flag.Int("fault.runs", 0, "number of random runs, with consecutive seeds from -fault.seed")
	long = flag.Bool("fault.long", false, "also run the scenarios that take minutes")
	keep = flag.String("fault.keep", "",
		"directory for the history, logs and data of every run; by default, failed runs leave theirs in the temporary "+
			"directory")
	brokers = flag.Int("fault.brokers", 3, "number of brokers, of which one is active")
	other   = flag.String("fault.broker", "",
		"path of the broker to test, such as an older version; by default the broker of this tree")
	only  = flag.String("fault.only", "", "the faults of a single run, by name, separated by commas")
	raced = flag.Int("fault.races", 0,
		"number of timers that clients race for while the leader of the timers' stream changes")
	broken = flag.Bool("fault.mutants", false, "also run brokers that are broken on purpose")
)

var testedPrograms programs

// maxParallel is the default of -parallel. It does not depend on the number of cores, because the tests mostly wait.
// With six tests on two busy cores, heartbeats were late, and lanes changed their owners without a fault.
const maxParallel = 4

func TestMain(m *testing.M) {
	chosen := false
	flag.Parse()
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if !chosen {
		if err := flag.Set("test.parallel", strconv.Itoa(maxParallel)); err != nil {
			panic(err)
		}
	}
	if testing.Short() { // with -short, no test needs the programs
		os.Exit(m.Run())
	}
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "fault-programs-")
		if err == nil {
			defer os.RemoveAll(dir)
			testedPrograms, err = buildPrograms(dir, *other)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}())
}

// TestFaults injects faults under load. No accepted message is lost or early, and on every server the target's stream
// holds one copy of each message. After a clean stop, the broker sends no message twice.
func TestFaults(t *testing.T) {
	natstest.SkipShort(t)
	sum := new(totals)
	t.Cleanup(func() { t.Log(sum) })
	switch {
	case *only != "":
		faults, err := faultsNamed(strings.Split(*only, ","))
		natstest.NoError(t, err)
		sum.run(t, plan{name: *only, seed: *seed, brokers: *brokers, rate: 300, programs: testedPrograms, faults: faults,
			ladder: shortLadder, players: players})
	case *duration > 0 || *seed > 0 || *runs > 0:
		sum.random(t)
	default:
		t.Parallel()
		for _, p := range eachFault() {
			t.Run(p.name, func(t *testing.T) {
				t.Parallel()
				sum.run(t, p)
			})
		}
	}
}

// eachFault returns plans with faults of each kind: of servers, of the cluster, by administrators, of brokers, and
// clean stops. The longest plan is the first.
func eachFault() []plan {
	all := []plan{
		{name: "servers", seed: 3, faults: []fault{leaderKilled, serverPaused, steppedDown, serverCut}},
		{name: "clusters", seed: 4, faults: []fault{serversRolling, serversKilled, allKilled}},
		{name: "administrators", seed: 5, faults: []fault{laneReplaced, idsForged, storeFull}},
		{name: "brokers", seed: 2,
			faults: []fault{brokerKilled, brokerBlink, brokerPaused, brokerReset, brokerCut, stoppedUnseen}},
		{name: "clean stops", seed: 1, faults: []fault{brokersRolling, brokerStopped}},
	}
	if *brokers > 1 { // another broker must take over
		all[2].faults = append(all[2].faults, ownersPurged)
	}
	for i := range all {
		all[i].brokers, all[i].programs, all[i].ladder, all[i].players = *brokers, testedPrograms, shortLadder, players
		all[i].rate = 100 // messages a second; random runs have up to four times as many
		all[i].shortGaps = true
	}
	return all
}

// BenchmarkRolling measures a run without faults, and a run in which all brokers are restarted in turn.
func BenchmarkRolling(b *testing.B) {
	calm := plan{name: "undisturbed", seed: 1, brokers: *brokers, rate: 999, programs: testedPrograms,
		calmTime: 10 * time.Second}
	rolling := calm
	rolling.name, rolling.faults = "rolling restart", []fault{brokersRolling, brokersRolling, brokersRolling}
	benchmark(b, calm)
	benchmark(b, rolling)
}

// BenchmarkTakeOver measures a run in which a broker is down for longer than its leases last, and a run in which the
// leader of the stream of owners is also killed.
func BenchmarkTakeOver(b *testing.B) {
	p := plan{name: "broker killed", seed: 1, brokers: *brokers, rate: 300, programs: testedPrograms,
		faults: []fault{brokerLost}}
	benchmark(b, p)
	p.name, p.faults = "broker and bucket leader killed", []fault{ownersLost}
	benchmark(b, p)
}

func benchmark(b *testing.B, p plan) {
	b.Run(p.name, func(b *testing.B) {
		for b.Loop() {
			report, err := p.run(*keep, *keep != "")
			natstest.NoError(b, err)
			b.Log(report)
			if len(report.Violations) > 0 {
				b.Errorf("%d violations; to judge the history again: go run ./test/fault/check %s", len(report.Violations),
					report.Kept)
			}
			b.ReportMetric(float64(report.Median)/1e6, "p50-ms-late")
			b.ReportMetric(float64(report.P99)/1e6, "p99-ms-late")
			b.ReportMetric(float64(report.Worst)/1e6, "max-ms-late")
			b.ReportMetric(float64(report.Repeats), "sent-again")
		}
	})
}
