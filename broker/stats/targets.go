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

// AddTargets adds the reports of instances by target and rate, and returns the busiest first. It ignores the targets of
// an instance after the first maxTargets.
func AddTargets(instances ...[]TargetAnswer) []TargetAnswer {
	sums := make(map[targetKey]*TargetAnswer)
	for _, targets := range instances {
		for _, a := range targets[:min(len(targets), maxTargets)] {
			sum := sums[a.key()]
			if sum == nil {
				sum = &TargetAnswer{TargetCount: TargetCount{Target: a.Target, Rate: a.Rate}}
				sums[a.key()] = sum
			}
			sum.Delivered, sum.Refused = sum.Delivered+a.Delivered, sum.Refused+a.Refused
			sum.DeliveredRate = addRates(sum.DeliveredRate, a.DeliveredRate)
			sum.RefusedRate = addRates(sum.RefusedRate, a.RefusedRate)
		}
	}
	all := make([]TargetAnswer, 0, len(sums))
	for _, sum := range sums {
		all = append(all, *sum)
	}
	slices.SortFunc(all, func(a, b TargetAnswer) int {
		return cmp.Or(cmp.Compare(attemptRate(b), attemptRate(a)), cmp.Compare(b.Delivered+b.Refused, a.Delivered+a.Refused),
			cmp.Compare(a.Target, b.Target), cmp.Compare(a.Rate, b.Rate))
	})
	return all
}

func addRates(a, b *float64) *float64 {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	return new(*a + *b)
}

func attemptRate(a TargetAnswer) (n float64) {
	for _, rate := range []*float64{a.DeliveredRate, a.RefusedRate} {
		if rate != nil {
			n += *rate
		}
	}
	return n
}
