package inspect

import (
	"math"
	"sort"
	"time"
)

// slots are the rows of a forecast: overdue, one for each bucket, later, and unreadable.
type slots struct {
	cuts []time.Time // the beginning of the first bucket, and the end of each
}

// newSlots returns slots whose buckets begin at full minutes or hours, except the first, which begins now.
func newSlots(now time.Time, query ForecastQuery) slots {
	s := slots{cuts: []time.Time{now}}
	until := now.Add(query.Length)
	for at := now.Truncate(query.Step).Add(query.Step); at.Before(until); at = at.Add(query.Step) {
		s.cuts = append(s.cuts, at)
	}
	s.cuts = append(s.cuts, until)
	return s
}

func (s slots) laterSlot() int      { return len(s.cuts) }
func (s slots) unreadableSlot() int { return len(s.cuts) + 1 }
func (s slots) count() int          { return len(s.cuts) + 2 }

// slotOf returns the slot of a due time. Slot n ends where slot n+1 begins, at cuts[n].
func (s slots) slotOf(due time.Time) int {
	return sort.Search(len(s.cuts), func(n int) bool { return s.cuts[n].After(due) })
}

// A tally is the estimate of each slot.
type tally []estimate

// estimate is a number with two errors: the variance of the sample, and a strict bound.
type estimate struct{ number, variance, bound float64 }

// round returns the number with an error of two standard deviations, which covers 95 of 100 cases. It ignores an error
// below a thousandth of a message: such an error comes from floating-point arithmetic.
func (e estimate) round() Amount {
	off := 2*math.Sqrt(e.variance) + e.bound
	return Amount{Messages: uint64(math.Round(max(0, e.number))), MaxError: uint64(math.Ceil(off - 0.001))}
}

// addSample spreads messages over the slots in proportion to their sample. Unrelated is the number of sampled messages
// that belong to no slot. If the sample is empty, addSample only adds to the variances.
func (t tally) addSample(messages uint64, sample []uint64, unrelated uint64) {
	n, all := sum64(sample)+unrelated, float64(messages)
	for slot, seen := range sample {
		if n > 0 {
			t[slot].number += all * float64(seen) / float64(n)
		}
		t[slot].variance += all * all * shareVariance(seen, n, messages)
	}
}

// shareVariance returns the variance of a share, estimated from a sample of n of all messages. It adds two messages
// inside the slot and two outside it (Agresti and Coull), because a slot without a sampled message may still contain
// messages. These four messages shift the middle of the confidence interval. So the standard deviation, of which round
// reports two, is increased by half of the shift.
func shareVariance(seen, n, all uint64) float64 {
	if n >= all {
		return 0 // the sample is the whole
	}
	middle, shift := float64(seen+2)/float64(n+4), 0.0
	if n > 0 {
		shift = math.Abs(middle - float64(seen)/float64(n))
	}
	deviation := math.Sqrt(middle*(1-middle)/float64(n+4)) + shift/2
	others := float64(all-n) / float64(max(1, all-1))
	return deviation * deviation * others
}

func sum64(all []uint64) (n uint64) {
	for _, v := range all {
		n += v
	}
	return n
}
