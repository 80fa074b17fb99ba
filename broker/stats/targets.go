package stats

import (
	"cmp"
	"slices"
	"time"

	"delaybroker/broker/deliver"
)

const maxTargets = 1000

// TargetCount counts the delivered and the refused attempts to deliver.
type TargetCount struct {
	Target    string `json:"target"`         // a target, or a pattern of targets: see deliver.Counts
	Rate      string `json:"rate,omitempty"` // the pattern of DELAY_RATE that applies to Target
	Delivered uint64 `json:"delivered"`
	Refused   uint64 `json:"refused"`
}

// targetKey identifies a TargetCount.
type targetKey struct{ target, rate string }

func (c TargetCount) key() targetKey { return targetKey{c.Target, c.Rate} }

// readTargets leaves out the targets that have neither an attempt nor a rate.
func readTargets(counts *deliver.Counts) []TargetCount {
	all := []TargetCount{}
	for _, c := range counts.All() {
		delivered, refused := c.Read()
		if delivered+refused > 0 || c.Rate != "" {
			all = append(all, TargetCount{c.Target, c.Rate, delivered, refused})
		}
	}
	return all
}

// RateCount counts the delivered and refused attempts for the targets whose rate one pattern sets.
type RateCount struct {
	Pattern   string `json:"pattern"`
	Delivered uint64 `json:"delivered"`
	Refused   uint64 `json:"refused"`
}

// sumByRate returns the sums by Rate, and ignores targets without a rate.
func sumByRate(targets []TargetCount) []RateCount {
	sums := []RateCount{}
	for _, t := range targets {
		if t.Rate == "" {
			continue
		}
		i := slices.IndexFunc(sums, func(r RateCount) bool { return r.Pattern == t.Rate })
		if i < 0 {
			i = len(sums)
			sums = append(sums, RateCount{Pattern: t.Rate})
		}
		sums[i].Delivered += t.Delivered
		sums[i].Refused += t.Refused
	}
	return sums
}

// TargetAnswer is a TargetCount, and the attempts per second in the latest step of the history. Both rates are null
// without a history, and until the first step ends.
type TargetAnswer struct {
	TargetCount
	DeliveredRate *float64 `json:"delivered_per_second"`
	RefusedRate   *float64 `json:"refused_per_second"`
	Recent        []uint64 `json:"recent,omitempty"` // attempts in each of the latest steps: see Recent
}

// TargetsSince returns the current counts. The interval is the time since the earlier counts; if it is zero, the rates
// are null. Counts never fall. A TargetCount without an earlier count began at zero.
func TargetsSince(current, earlier []TargetCount, interval time.Duration) []TargetAnswer {
	counts := make(map[targetKey]TargetCount, len(earlier))
	for _, c := range earlier {
		counts[c.key()] = c
	}
	all := make([]TargetAnswer, 0, len(current))
	for _, c := range current {
		a, previous := TargetAnswer{TargetCount: c}, counts[c.key()]
		if interval > 0 {
			a.DeliveredRate = new(float64(c.Delivered-previous.Delivered) / interval.Seconds())
			a.RefusedRate = new(float64(c.Refused-previous.Refused) / interval.Seconds())
		}
		all = append(all, a)
	}
	return all
}

// InheritTargets adds the counts of earlier instances to the answers of the active one, and returns the busiest first,
// at most maxTargets.
func InheritTargets(earlier []TargetCount, own []TargetAnswer) []TargetAnswer {
	all := slices.Clone(own)
	for _, c := range earlier {
		i := slices.IndexFunc(all, func(a TargetAnswer) bool { return a.key() == c.key() })
		if i < 0 {
			i, all = len(all), append(all, TargetAnswer{TargetCount: TargetCount{Target: c.Target, Rate: c.Rate}})
		}
		all[i].Delivered, all[i].Refused = all[i].Delivered+c.Delivered, all[i].Refused+c.Refused
	}
	slices.SortFunc(all, func(a, b TargetAnswer) int {
		return cmp.Or(cmp.Compare(attemptRate(b), attemptRate(a)), cmp.Compare(b.Delivered+b.Refused, a.Delivered+a.Refused),
			cmp.Compare(a.Target, b.Target), cmp.Compare(a.Rate, b.Rate))
	})
	return all[:min(len(all), maxTargets)]
}

const (
	maxRecent = 30  // number of steps that a small chart shows
	maxCharts = 200 // number of targets with a small chart
)

// Recent returns the values of the latest steps, at most maxRecent: the earlier ones, and the newest.
func Recent(earlier []uint64, newest uint64) []uint64 {
	return append(slices.Clone(earlier[max(0, len(earlier)+1-maxRecent):]), newest)
}

// ContinueTargets adds the attempts of the latest step, of a length, to those of the steps before. Targets has the
// busiest first.
func ContinueTargets(targets, before []TargetAnswer, step time.Duration) {
	recent := make(map[targetKey][]uint64, len(before))
	for _, b := range before {
		recent[b.key()] = b.Recent
	}
	for i, t := range targets[:min(len(targets), maxCharts)] {
		targets[i].Recent = Recent(recent[t.key()], uint64(attemptRate(t)*step.Seconds()+0.5))
	}
}

// SubtractTargets subtracts the counts of one instance from those of the fleet.
func SubtractTargets(fleet, one []TargetCount) []TargetCount {
	rest := slices.Clone(fleet)
	for i := range rest {
		for _, c := range one {
			if c.key() == rest[i].key() {
				rest[i].Delivered -= min(rest[i].Delivered, c.Delivered)
				rest[i].Refused -= min(rest[i].Refused, c.Refused)
			}
		}
	}
	return rest
}

func attemptRate(a TargetAnswer) (n float64) {
	for _, rate := range []*float64{a.DeliveredRate, a.RefusedRate} {
		if rate != nil {
			n += *rate
		}
	}
	return n
}
