package bench

import (
	"fmt"
	"slices"
)

// A Metric is one number of a result.
type Metric struct {
	Name string // the name with the unit, which is the head of a column
	// HasRatios is true if a Ratio may compare this metric. The table shows the other metrics only with the flag --wide.
	HasRatios bool
	// Value returns the number, or false if the result does not have the number.
	Value func(Result) (float64, bool)
}

// Metrics are all metrics. The table of results also has the columns lost, early and twice, which are not metrics.
var Metrics = []Metric{
	{"min ms", false, spread(late, func(s *Spread) float64 { return s.Min })},
	{"p50 ms", true, spread(late, func(s *Spread) float64 { return s.P50 })},
	{"p90 ms", false, spread(late, func(s *Spread) float64 { return s.P90 })},
	{"p99 ms", true, spread(late, func(s *Spread) float64 { return s.P99 })},
	{"p99.9 ms", false, spread(late, func(s *Spread) float64 { return s.P999 })},
	{"max ms", true, spread(late, func(s *Spread) float64 { return s.Max })},
	{"promised p99 ms", false, spread(promisedLate, func(s *Spread) float64 { return s.P99 })},
	{"published/s", true, nonzero(func(r Result) float64 { return r.Published })},
	{"arrived/s", true, nonzero(func(r Result) float64 { return r.Arrived })},
	{"drained/s", true, nonzero(func(r Result) float64 { return r.Drained })},
	{"cancelled/s", true, nonzero(func(r Result) float64 { return orZero(r.Timers).Cancelled })},
	{"requested/s", true, nonzero(func(r Result) float64 { return orZero(r.Timers).Requested })},
	{"moved/s", true, nonzero(func(r Result) float64 { return orZero(r.Timers).Moved })},
	{"even p99 ms", true, spread(evenLate, func(s *Spread) float64 { return s.P99 })},
	{"plain p99 ms", true, spread(plainLate, func(s *Spread) float64 { return s.P99 })},
	{"ack p50 ms", false, spread(acks, func(s *Spread) float64 { return s.P50 })},
	{"ack p99 ms", false, spread(acks, func(s *Spread) float64 { return s.P99 })},
	{"passes", false, nonzero(func(r Result) float64 { return r.Passes })},
	{"CPU us", true, nonzero(func(r Result) float64 { return orZero(r.Cost).Server + orZero(r.Cost).Sidecar })},
	{"server us", false, nonzero(func(r Result) float64 { return orZero(r.Cost).Server })},
	{"sidecar us", false, nonzero(func(r Result) float64 { return orZero(r.Cost).Sidecar })},
	{"peak MB", false, nonzero(func(r Result) float64 { return orZero(r.Cost).Peak })},
	{"server B", true, nonzero(func(r Result) float64 { return orZero(r.Idle).ServerBytes })},
	{"sidecar B", true, nonzero(func(r Result) float64 { return orZero(r.Idle).SidecarBytes })},
	{"ready ms", true, nonzero(func(r Result) float64 { return orZero(r.Idle).ReadyMS })},
	{"server idle %", true, nonzero(func(r Result) float64 { return 100 * orZero(r.Idle).ServerIdle })},
	{"sidecar idle %", true, nonzero(func(r Result) float64 { return 100 * orZero(r.Idle).SidecarIdle })},
}

func late(r Result) *Spread         { return r.Late }
func promisedLate(r Result) *Spread { return r.Promised }
func acks(r Result) *Spread         { return r.Acks }
func evenLate(r Result) *Spread     { return orZero(r.Timers).EvenLate }
func plainLate(r Result) *Spread    { return orZero(r.Timers).PlainLate }

func orZero[T any](part *T) (v T) {
	if part != nil {
		v = *part
	}
	return v
}

// nonzero returns a Metric.Value that takes zero as "not measured".
func nonzero(number func(Result) float64) func(Result) (float64, bool) {
	return func(r Result) (float64, bool) {
		n := number(r)
		return n, n != 0
	}
}

func spread(part func(Result) *Spread, percentile func(*Spread) float64) func(Result) (float64, bool) {
	return func(r Result) (float64, bool) {
		if s := part(r); s != nil {
			return percentile(s), true
		}
		return 0, false
	}
}

// A Ratio compares one metric of two measurements: either the broker and Side in one run, or Side in an earlier run and
// Side in a later run. The two numbers are a pair. The ratio of a pair is its second number divided by its first. Pairs
// whose first number is not positive are ignored.
type Ratio struct {
	Side    Side    `json:"side"`
	Metric  string  `json:"metric"`
	Base    float64 `json:"from"`    // median of the first numbers of all pairs
	Value   float64 `json:"to"`      // median of the second numbers of all pairs
	Median  float64 `json:"ratio"`   // median of the ratios of all pairs
	Lowest  float64 `json:"lowest"`  // lowest ratio of a pair
	Highest float64 `json:"highest"` // highest ratio of a pair
}

// RatiosToBroker returns the ratios of the other sides to the broker. A pair has the numbers of one round.
func (r *Report) RatiosToBroker() []Ratio {
	return ratios(r.Plan.Sides, func(side Side, m Metric) (pairs [][2]float64) {
		if side == Broker {
			return nil
		}
		for _, broker := range r.resultsOf(Broker) {
			for _, result := range r.resultsOf(side) {
				a, ok := m.Value(broker)
				b, okOther := m.Value(result)
				if ok && okOther && broker.Round == result.Round {
					pairs = append(pairs, [2]float64{a, b})
				}
			}
		}
		return pairs
	})
}

// Compare returns the ratios of a later run to an earlier run, for each side in both runs. A pair has the medians of
// the rounds.
func Compare(earlier, later *Report) []Ratio {
	return ratios(later.Plan.Sides, func(side Side, m Metric) [][2]float64 {
		a, ok := earlier.median(side, m)
		b, okLater := later.median(side, m)
		if !ok || !okLater {
			return nil
		}
		return [][2]float64{{a, b}}
	})
}

func ratios(sides []Side, pairs func(Side, Metric) [][2]float64) (ratios []Ratio) {
	for _, side := range sides {
		for _, m := range Metrics {
			if !m.HasRatios {
				continue
			}
			var bases, values, quotients []float64
			for _, pair := range pairs(side, m) {
				if pair[0] > 0 {
					bases, values, quotients = append(bases, pair[0]), append(values, pair[1]), append(quotients, pair[1]/pair[0])
				}
			}
			if len(quotients) > 0 {
				ratios = append(ratios, Ratio{
					Side: side, Metric: m.Name, Base: median(bases), Value: median(values),
					Median: median(quotients), Lowest: slices.Min(quotients), Highest: slices.Max(quotients),
				})
			}
		}
	}
	return ratios
}

func (r *Report) resultsOf(side Side) (results []Result) {
	for _, result := range r.Results {
		if result.Side == side && result.Unsupported == "" {
			results = append(results, result)
		}
	}
	return results
}

func (r *Report) median(side Side, m Metric) (float64, bool) {
	var numbers []float64
	for _, result := range r.resultsOf(side) {
		if n, ok := m.Value(result); ok {
			numbers = append(numbers, n)
		}
	}
	if len(numbers) == 0 {
		return 0, false
	}
	return median(numbers), true
}

// median returns the median of at least one number: for an even count, the mean of the middle two numbers.
func median(numbers []float64) float64 {
	numbers = slices.Sorted(slices.Values(numbers))
	return (numbers[(len(numbers)-1)/2] + numbers[len(numbers)/2]) / 2
}

// Differences returns the differences between the plans, the hosts and the servers of two runs that make a comparison
// unfair.
func Differences(earlier, later *Report) (differences []string) {
	differ := func(name string, a, b any) {
		if a != b {
			differences = append(differences, fmt.Sprintf("%s %v → %v", name, a, b))
		}
	}
	a, b := earlier.Plan, later.Plan
	differ("scenario", a.Scenario, b.Scenario)
	differ("rate", a.Rate, b.Rate)
	differ("for", a.Duration, b.Duration)
	differ("count", a.Count, b.Count)
	differ("size", a.Size, b.Size)
	differ("delay", fmt.Sprint(a.Delays), fmt.Sprint(b.Delays))
	differ("targets", a.Targets, b.Targets)
	differ("publishers", a.Publishers, b.Publishers)
	differ("core", a.Core, b.Core)
	differ("cancelled percent", a.CancelPercent, b.CancelPercent)
	differ("timers", a.TimerRate, b.TimerRate)
	differ("every", a.Interval, b.Interval)
	differ("cpus", earlier.CPUs, later.CPUs)
	differ("os", earlier.OS, later.OS)
	differ("nats-server", earlier.Server, later.Server)
	return differences
}
