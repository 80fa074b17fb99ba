package bench

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// A Scenario is a kind of run.
type Scenario string

// The scenarios. See the package for what each shows.
const (
	Steady  Scenario = "steady"
	Burst   Scenario = "burst"
	Chain   Scenario = "chain"
	Core    Scenario = "core"
	Ingest  Scenario = "ingest"
	Pending Scenario = "pending"
	Idle    Scenario = "idle"
	Timers  Scenario = "timers"
	Rounds  Scenario = "rounds"
)

// Scenarios are all of them.
var Scenarios = []Scenario{Steady, Burst, Chain, Core, Ingest, Pending, Idle, Timers, Rounds}

// The bounds of a Plan.
const (
	maxCount      = 10_000_000
	maxRate       = 1_000_000
	maxSize       = 1 << 20
	maxPublishers = 64
	maxRounds     = 100
	maxTimerSize  = 64 << 10 // a series takes so much for each second of its interval
	// stillDelay is longer than anybody publishes for.
	stillDelay = 10 * time.Minute
)

// A Plan is what to run. Those fields that a scenario has no use for are zero.
type Plan struct {
	Scenario Scenario `json:"scenario"`
	Sides    []Side   `json:"sides"`  // in the order of their turns
	Rounds   int      `json:"rounds"` // how often each has a turn

	Rate       int           `json:"rate,omitempty"`   // messages a second
	For        time.Duration `json:"for_ns,omitempty"` // how long to publish, or to watch
	Count      int           `json:"count,omitempty"`  // messages; with a rate it is rate times For
	Size       int           `json:"size,omitempty"`   // bytes of a payload
	Delays     []Delay       `json:"delays,omitempty"` // for one instant, how long after the first publish it is; empty: enough
	Targets    int           `json:"targets,omitempty"`
	Publishers int           `json:"publishers,omitempty"`
	Core       bool          `json:"core,omitempty"` // plain subscribers instead of a stream

	Cancel int           `json:"cancel_percent,omitempty"` // of the timers
	Timers int           `json:"timers,omitempty"`         // timers that are due each second, beside Rate plain messages
	Every  time.Duration `json:"every_ns,omitempty"`       // from one round to the next
}

// NewPlan is a scenario as it is unless asked for otherwise.
func NewPlan(s Scenario) (Plan, error) {
	p := Plan{Scenario: s, Sides: []Side{Broker}, Rounds: 1, Size: 256, Targets: 10, Publishers: 1}
	second := []Delay{{Duration: time.Second}}
	switch s {
	case Steady:
		p.Rate, p.For, p.Delays = 5_000, 10*time.Second, second
	case Chain:
		p.Rate, p.For, p.Delays = 1_000, 10*time.Second, []Delay{{Duration: 20 * time.Second, Random: true}}
	case Burst:
		p.Count = 100_000
	case Core:
		p.Count, p.Targets, p.Core = 100_000, 100_000, true
	case Ingest:
		p.Count, p.Delays = 200_000, []Delay{{Duration: time.Hour}}
	case Pending:
		p.Count, p.Delays, p.For = 1_000_000, []Delay{{Duration: 2 * time.Hour}}, 20*time.Second
	case Idle:
		p = Plan{Scenario: s, Sides: p.Sides, Rounds: 1, For: 30 * time.Second}
	case Timers:
		p.Count, p.Cancel, p.Timers, p.Rate, p.For = 50_000, 50, 500, 5_000, 5*time.Second
	case Rounds:
		p.Count, p.Every, p.For = 20_000, 10*time.Second, 20*time.Second
	default:
		return Plan{}, fmt.Errorf("there is no scenario %q: want one of %s", s, list(Scenarios))
	}
	return p, nil
}

// paced reports whether messages come at a rate, and not all at once.
func (s Scenario) paced() bool { return s == Steady || s == Chain }

// oneInstant reports whether all are due at the same time.
func (s Scenario) oneInstant() bool { return s == Burst || s == Core || s == Timers || s == Rounds }

// Named reports whether the scenario is about named timers.
func (s Scenario) Named() bool { return s == Timers || s == Rounds }

// still reports whether nothing becomes due during the run.
func (s Scenario) still() bool { return s == Ingest || s == Pending }

// Check says everything that is wrong with a plan, and sets the count of one with a rate.
func (p *Plan) Check() error {
	var problems []error
	within := func(what string, n, low, high int) {
		if n < low || n > high {
			problems = append(problems, fmt.Errorf("%s %d: want %d to %d", what, n, low, high))
		}
	}
	within("rounds", p.Rounds, 1, maxRounds)
	if p.Scenario.paced() {
		within("rate", p.Rate, 1, maxRate)
		p.Count = int(p.For.Seconds() * float64(p.Rate))
	}
	if (p.Scenario.paced() || p.Scenario == Pending || p.Scenario == Idle) && p.For <= 0 {
		problems = append(problems, fmt.Errorf("for %s: want more", p.For))
	}
	if p.Scenario != Idle {
		within("count", p.Count, 1, maxCount)
		within("size", p.Size, MinSize, maxSize)
		within("targets", p.Targets, 1, maxCount)
		within("publishers", p.Publishers, 1, maxPublishers)
	}
	if p.Scenario.oneInstant() && (len(p.Delays) > 1 || len(p.Delays) == 1 && p.Delays[0].Random) {
		problems = append(problems,
			errors.New("delay: this scenario needs exactly one fixed delay: all messages are due at one instant"))
	}
	if p.Scenario.still() {
		for _, d := range p.Delays {
			if d.Random || d.Duration < stillDelay {
				problems = append(problems, fmt.Errorf("delay %s: want %s or more, so that nothing is due meanwhile",
					d, stillDelay))
			}
		}
	}
	if p.Scenario.Named() {
		problems = append(problems, p.checkTimers()...)
	}
	if p.Core && p.Scenario.still() {
		problems = append(problems, errors.New("to core: nothing arrives"))
	}
	return errors.Join(problems...)
}

// ahead is how long after the first publish everything is due, when that is one instant.
func (p Plan) ahead() time.Duration {
	if len(p.Delays) > 0 {
		return p.Delays[0].Duration
	}
	const slow, spare = 20_000, 5 * time.Second // messages a second that any server takes
	if p.Scenario == Timers {
		return spare + p.slowest()
	}
	return spare + time.Duration(p.Count)*time.Second/slow
}

// longest is how long after its publish the last message is due.
func (p Plan) longest() time.Duration {
	if p.Scenario.oneInstant() {
		return p.ahead()
	}
	var most time.Duration
	for _, d := range p.Delays {
		most = max(most, d.Duration)
	}
	return most
}

func list(all []Scenario) string {
	var words []string
	for _, s := range all {
		words = append(words, string(s))
	}
	return strings.Join(words, ", ")
}
