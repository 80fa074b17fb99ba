//go:build linux

package fault

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"delaybroker/test/natstest"
)

// scenario is a run for one danger.
type scenario struct {
	plan
	short bool // TestScenarios also runs this scenario without -fault.long
}

func again(n int, faults ...fault) []fault { return slices.Repeat(faults, n) }

// scenarios returns all scenarios, ordered by the kind of fault. In a plan with a home, the brokers reach only that
// server.
func scenarios() []scenario {
	return []scenario{
		// A reader's consumer has no replica. When its server restarts, the server creates the consumer again under its name,
		// and the new consumer counts from one. No message may be lost, whether the reader is idle or sends a request.
		{short: true, plan: plan{name: createdAgain, seed: 11, rate: 50, home: 1, brokers: 1, ladder: quietLadder,
			faults: []fault{readerReborn}}},
		{plan: plan{name: "a reader's server is back, slow", seed: 12, rate: 50, home: 1, ladder: deepLadder,
			calmTime:     overtakeTime,
			fastRecovery: true,
			faults:       []fault{readersBlink, readersLost, readerBlink, readerShort, readersBlink, readerLost, readerGone}}},
		{plan: plan{name: "a reader's server is back, slow, brokers on all", seed: 13, rate: 50, ladder: deepLadder,
			calmTime: overtakeTime, fastRecovery: true,
			faults: []fault{readersBlink, readersLost, readerBlink, readerShort, readersBlink, readerLost, readerGone}}},
		{plan: plan{name: "a reader's server is back, fast", seed: 14, rate: 2000, home: 1, ladder: wideLadder,
			faults: []fault{readersBlink, readerShort, readerLost, readersBlink}}},
		{plan: plan{name: "a reader's server is back, fast, brokers on all", seed: 15, rate: 2000, ladder: wideLadder,
			faults: []fault{readersBlink, readerShort, readerLost, readersBlink}}},

		{plan: plan{name: "rolling kills, slow", seed: 21, rate: 50, calmTime: overtakeTime, ladder: wideLadder,
			faults: again(4, serversCrash)}},
		{plan: plan{name: "rolling kills, slow, brokers on one", seed: 22, rate: 50, calmTime: overtakeTime, home: 2,
			ladder: wideLadder, faults: again(4, serversCrash)}},
		{plan: plan{name: "rolling restarts, slow", seed: 23, rate: 50, calmTime: overtakeTime, ladder: wideLadder,
			faults: again(4, serversRolling)}},
		{plan: plan{name: "rolling retirement, slow", seed: 24, rate: 50, ladder: wideLadder, faults: again(2, serversLame)}},
		{plan: plan{name: "rolling kills, fast", seed: 25, rate: 2000, ladder: wideLadder, faults: again(3, serversCrash)}},
		{plan: plan{name: "rolling restarts, fast", seed: 26, rate: 2000, ladder: wideLadder,
			faults: again(3, serversRolling)}},
		{plan: plan{name: "rolling retirement, fast", seed: 27, rate: 2000, ladder: wideLadder,
			faults: []fault{serversLame}}},

		// A leader that was paused answers from an old state until it learns that another server leads.
		{plan: plan{name: "leaders paused", seed: 31, rate: 300, ladder: wideLadder, calmTime: 2 * time.Second,
			faults: []fault{serverBlink, lanePaused, laneStale, serverPaused, laneStale, laneGone}}},

		{plan: plan{name: "a lone broker is cut off", seed: 41, rate: 100, brokers: 2, calmTime: excuseTime,
			faults: []fault{loneCut}}},
		{plan: plan{name: "a lone broker's server is cut off", seed: 42, rate: 100, brokers: 2, calmTime: excuseTime,
			faults: []fault{loneServerCut}}},
		{plan: plan{name: "a full account", seed: 43, rate: 100, brokers: 2, ladder: pushLadder,
			faults: []fault{storeFullLong}}},
		{plan: plan{name: "the bucket is purged and deleted", seed: 44, rate: 200, calmTime: excuseTime / 2,
			faults: []fault{ownersPurged, ownersDeleted, brokerLost}}},

		// Clients cancel, move, replace and fire timers while the leader of the timers' stream changes.
		{short: true, plan: races(71, 2)},

		// A tenant with its documented grants causes no duplicates, and forges no message.
		{short: true, plan: plan{name: "a tenant attacks", seed: 51, rate: 200, faults: []fault{tenantAttacks}}},
		{plan: plan{name: "a tenant attacks meanwhile", seed: 52, rate: 200, attack: true,
			faults: []fault{leaderKilled, brokerKilled, serverCut, brokerStopped}}},

		{plan: plan{name: "a lone broker is killed again and again", seed: 61, rate: 500, brokers: 1, ready: 2 * time.Second,
			late:   4 * time.Second,
			faults: again(8, brokerRestarted)}},
	}
}

// races returns a plan with this number of faults. Clients race for many timers while the leader of the timers' stream
// changes repeatedly. All timers are near their due times, and most are in the memory of a broker.
func races(seed uint64, faults int) plan {
	p := plan{name: "timers are raced for", seed: seed, brokers: *brokers, rate: 20, players: 40, races: true,
		ladder: shortLadder, shortGaps: true}
	all := []fault{timersRestless, timersKilled, steppedDown, timersRestless, brokerKilled, timersPaused, timersRestless,
		leaderKilled, serversCrash, serverCut, serversKilled}
	for i := range faults {
		p.faults = append(p.faults, all[i%len(all)])
	}
	return p
}

func scenarioNamed(name string) plan {
	all := scenarios()
	return all[slices.IndexFunc(all, func(s scenario) bool { return s.name == name })].plan
}

// overtakeTime is a time in which a new consumer delivers more messages than the previous consumer had delivered.
const overtakeTime = 14 * time.Second

// excuseTime is longer than the time after a fault in which the fault excuses a duplicate.
const excuseTime = 20 * time.Second

// TestTimerRacesWithFaults repeats the plan of races until clients have raced for -fault.races timers. For each timer,
// there must be an order of its requests and deliveries in which every answer is correct. So no timer is delivered
// after an acknowledged cancel, and a cancel is refused only if the generation was delivered, replaced or cancelled.
// Without -fault.races nothing runs here, but TestScenarios has a short run of the same plan.
func TestTimerRacesWithFaults(t *testing.T) {
	natstest.SkipShort(t)
	var sum totals
	t.Cleanup(func() { t.Log(&sum) })
	for n := uint64(0); sum.Timers.Keys < *raced; n++ {
		p := races(*seed+n, 11)
		p.programs, p.noHistory, p.calmTime = testedPrograms, n%2 == 1, 3*time.Second
		t.Run(fmt.Sprintf("seed %d", p.seed), func(t *testing.T) {
			began := time.Now()
			fmt.Println(line(sum.run(t, p), time.Since(began)))
		})
	}
}

// TestScenarios: no message is lost, early or stored twice in situations that random runs meet rarely. Without
// -fault.long, only the short scenarios run.
func TestScenarios(t *testing.T) {
	natstest.SkipShort(t)
	if !*long {
		t.Parallel()
	}
	var sum totals
	t.Cleanup(func() { t.Log(&sum) })
	for _, s := range scenarios() {
		if !s.short && !*long {
			continue
		}
		p := s.plan
		p.programs = testedPrograms
		if p.brokers == 0 {
			p.brokers = 3
		}
		t.Run(p.name, func(t *testing.T) {
			if !*long {
				t.Parallel()
			}
			sum.run(t, p)
		})
	}
}

// TestReadmeExplainsFlags: the README explains every flag.
func TestReadmeExplainsFlags(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	flag.VisitAll(func(f *flag.Flag) {
		if strings.HasPrefix(f.Name, "fault.") && !strings.Contains(string(text), "\n| `-"+f.Name) {
			t.Errorf("the README does not explain -%s", f.Name)
		}
	})
}
