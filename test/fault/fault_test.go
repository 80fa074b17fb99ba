//go:build linux

package fault

import (
	"delaybroker/test/natstest"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

var (
	duration = flag.Duration("fault.duration", 0, "run random faults for so long, rather than each kind once")
	seed     = flag.Uint64("fault.seed", 0, "seed of the first random run; alone, that run and no other")
	runs     = flag.Int("fault.runs", 0, "how many random runs, with seeds from fault.seed on")
	long     = flag.Bool("fault.long", false, "run the scenarios that take minutes, too")
	keep     = flag.String("fault.keep", "",
		"where every run leaves its history, logs and data; without it, those that fail leave them in the temporary "+
			"directory")
	brokers = flag.Int("fault.brokers", 3, "how many brokers share the work")
	other   = flag.String("fault.broker", "", "the command to break, rather than this tree's, such as an older version")
	only    = flag.String("fault.only", "", "the faults of a single run, by name, separated by commas")
	raced   = flag.Int("fault.races", 0, "how many timers to race for while the leaders of their stream change")
	broken  = flag.Bool("fault.mutants", false, "run brokers that are broken on purpose, too")
)

// built are the programs under test.
var built programs

// sideBySide is how many tests run at once, unless -parallel says otherwise: they mostly wait, on any number of cores.
const sideBySide = 6

func TestMain(m *testing.M) {
	chosen := false
	flag.Parse()
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if !chosen {
		if err := flag.Set("test.parallel", strconv.Itoa(sideBySide)); err != nil {
			panic(err)
		}
	}
	if testing.Short() { // nothing runs that needs the programs
		os.Exit(m.Run())
	}
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

// TestFaults breaks things under load. Nothing that was accepted is lost or early, the target's stream holds one copy
// of each on every server, and a clean stop does not even send two.
func TestFaults(t *testing.T) {
	natstest.Long(t)
	sum := new(totals)
	t.Cleanup(func() { t.Log(sum) })
	switch {
	case *only != "":
		faults, err := faultsNamed(strings.Split(*only, ","))
		if err != nil {
			t.Fatal(err)
		}
		sum.run(t, plan{name: *only, seed: *seed, brokers: *brokers, rate: 300, programs: built, faults: faults,
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

// eachFault is a few runs that hold the kinds of fault, the longest first. Longer faults have a scenario: see
// TestScenarios.
func eachFault() []plan {
	all := []plan{
		{name: "servers", seed: 3, faults: []fault{leaderKilled, serverPaused, steppedDown, serverCut}},
		{name: "clusters", seed: 4, faults: []fault{serversRolling, serversKilled, allKilled}},
		{name: "administrators", seed: 5, faults: []fault{laneReplaced, idsForged, storeFull}},
		{name: "brokers", seed: 2,
			faults: []fault{brokerKilled, brokerBlink, brokerPaused, brokerReset, brokerCut, stoppedUnseen}},
		{name: "clean stops", seed: 1, faults: []fault{brokersRolling, brokerStopped}},
	}
	if *brokers > 1 { // there is somebody to take over
		all[2].faults = append(all[2].faults, ownersPurged)
	}
	for i := range all {
		all[i].brokers, all[i].programs, all[i].ladder, all[i].players = *brokers, built, shortLadder, players
		all[i].rate = 100 // some hundred messages are on their way at each fault; random runs have up to four times as many
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
