package bench

import (
	"errors"
	"fmt"
	"time"
)

// A Scenario is the kind of load and measurement of a run.
type Scenario string

// The scenarios. The help of "compare" describes them.
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

// Scenarios are all scenarios.
var Scenarios = []Scenario{Steady, Burst, Chain, Core, Ingest, Pending, Idle, Timers, Rounds}

// The limits of a Plan.
const (
	maxCount      = 10_000_000
	maxRate       = 1_000_000
	maxSize       = 1 << 20 // bytes
	maxPublishers = 64
	maxRounds     = 100
	maxTimerSize  = 64 << 10 // bytes; a timer may recur every second with such a body
	// minPendingDelay is the minimum delay in the scenarios ingest and pending. No message should become due during the
	// publishing.
	minPendingDelay = 10 * time.Minute
)

// A Plan is the parameters of a run. A field is zero if the scenario does not use it.
type Plan struct {
	Scenario Scenario `json:"scenario"`
	Sides    []Side   `json:"sides"`  // in the order of their turns
	Rounds   int      `json:"rounds"` // turns of each side

	Rate     int           `json:"rate,omitempty"`   // messages per second
	Duration time.Duration `json:"for_ns,omitempty"` // of the publishing; in Pending, Idle and Rounds, of the measurement
	Count    int           `json:"count,omitempty"`  // messages or timers; if paced, Rate times Duration
	Size     int           `json:"size,omitempty"`   // bytes of a payload
	// Delays are the delays of successive messages: see Load.Delays. If all messages are due at the same time, the only
	// delay is the time from the first publish to the due time. Empty means a default.
	Delays     []Delay `json:"delays,omitempty"`
	Targets    int     `json:"targets,omitempty"`
	Publishers int     `json:"publishers,omitempty"`
	Core       bool    `json:"core,omitempty"` // plain subscribers instead of a stream

	CancelPercent int           `json:"cancel_percent,omitempty"` // percentage of the timers to cancel
	TimerRate     int           `json:"timers,omitempty"`         // due timers per second, in addition to Rate
	Interval      time.Duration `json:"every_ns,omitempty"`       // of the rounds of recurring timers
}

// NewPlan returns the default plan of a scenario. It returns an error if the scenario is unknown.
func NewPlan(s Scenario) (Plan, error) {
	p := Plan{Scenario: s, Sides: []Side{Broker}, Rounds: 1, Size: 256, Targets: 10, Publishers: 1}
	oneSecond := []Delay{{Duration: time.Second}}
	switch s {
	case Steady:
		p.Rate, p.Duration, p.Delays = 5_000, 10*time.Second, oneSecond
	case Chain:
		p.Rate, p.Duration, p.Delays = 1_000, 10*time.Second, []Delay{{Duration: 20 * time.Second, Random: true}}
	case Burst:
		p.Count = 100_000
	case Core:
		p.Count, p.Targets, p.Core = 100_000, 100_000, true
	case Ingest:
		p.Count, p.Delays = 200_000, []Delay{{Duration: time.Hour}}
	case Pending:
		p.Count, p.Delays, p.Duration = 1_000_000, []Delay{{Duration: 2 * time.Hour}}, 20*time.Second
	case Idle:
		p = Plan{Scenario: s, Sides: p.Sides, Rounds: 1, Duration: 30 * time.Second}
	case Timers:
		p.Count, p.CancelPercent, p.TimerRate, p.Rate, p.Duration = 50_000, 50, 500, 5_000, 5*time.Second
	case Rounds:
		p.Count, p.Interval, p.Duration = 20_000, 10*time.Second, 20*time.Second
	default:
		return Plan{}, fmt.Errorf("unknown scenario %q: want one of %v", s, Scenarios)
	}
	return p, nil
}

// paced reports whether all messages are published at a rate.
func (s Scenario) paced() bool { return s == Steady || s == Chain }

// oneInstant reports whether all messages, or all messages of one round of recurring timers, are due at the same time.
// In the scenario timers, the even phase is an exception.
func (s Scenario) oneInstant() bool { return s == Burst || s == Core || s == Timers || s == Rounds }

// Named reports whether the scenario uses named timers.
func (s Scenario) Named() bool { return s == Timers || s == Rounds }

// nothingDue reports whether the run publishes messages that do not become due during the run.
func (s Scenario) nothingDue() bool { return s == Ingest || s == Pending }

// problems are the errors about the invalid values of a plan.
type problems []error

func (p *problems) addIf(invalid bool, format string, args ...any) {
	if invalid {
		*p = append(*p, fmt.Errorf(format, args...))
	}
}

func (p *problems) checkRange(name string, n, low, high int) {
	p.addIf(n < low || n > high, "%s %d: want %d to %d", name, n, low, high)
}

// Check returns an error with all invalid values of a plan, or nil. If the scenario is paced, Check sets Count.
func (p *Plan) Check() error {
	var problems problems
	problems.checkRange("rounds", p.Rounds, 1, maxRounds)
	if p.Scenario.paced() {
		problems.checkRange("rate", p.Rate, 1, maxRate)
		p.Count = int(p.Duration.Seconds() * float64(p.Rate))
	}
	problems.addIf((p.Scenario.paced() || p.Scenario == Pending || p.Scenario == Idle) && p.Duration <= 0,
		"for %s: want a longer duration", p.Duration)
	if p.Scenario != Idle {
		problems.checkRange("count", p.Count, 1, maxCount)
		problems.checkRange("size", p.Size, MinSize, maxSize)
		problems.checkRange("targets", p.Targets, 1, maxCount)
		problems.checkRange("publishers", p.Publishers, 1, maxPublishers)
	}
	problems.addIf(p.Scenario.oneInstant() && (len(p.Delays) > 1 || len(p.Delays) == 1 && p.Delays[0].Random),
		"delay: want one constant delay at most, since all messages of this scenario are due at the same time")
	for _, d := range p.Delays {
		problems.addIf(p.Scenario.nothingDue() && (d.Random || d.Duration < minPendingDelay),
			"delay %s: want a constant delay of at least %s, so that no message is due during the run", d, minPendingDelay)
	}
	if p.Scenario.Named() {
		p.checkTimers(&problems)
	}
	problems.addIf(p.Core && p.Scenario.nothingDue(), "core subscribers: this scenario delivers no message")
	problems.addIf(p.Core && p.Scenario.Named(), "core subscribers: this scenario delivers to a stream")
	return errors.Join(problems...)
}

// dueAfter returns the time from the beginning of the load to the common due time of all messages.
func (p Plan) dueAfter() time.Duration {
	if len(p.Delays) > 0 {
		return p.Delays[0].Duration
	}
	const minRate, margin = 20_000, 5 * time.Second // a slow server accepts minRate messages per second
	if p.Scenario == Timers {
		return margin + p.setupTime()
	}
	return margin + time.Duration(p.Count)*time.Second/minRate
}

// maxDelay returns the maximum time from the publish of a message to its due time.
func (p Plan) maxDelay() time.Duration {
	if p.Scenario.oneInstant() {
		return p.dueAfter()
	}
	var longest time.Duration
	for _, d := range p.Delays {
		longest = max(longest, d.Duration)
	}
	return longest
}
