package inspect

import (
	"math"
	"sort"
	"time"
)

// slots are the rows of a forecast: overdue, one for each bucket, later, and unreadable.
type slots struct {
	cuts []time.Time // the beginning of the first bucket, then the end of every bucket
}

// newSlots returns slots whose first bucket begins now. The other buckets begin at full minutes or hours.
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

// estimate is a number with two errors: the variance of a sample, and the maximum error of an order.
type estimate struct{ number, variance, bound float64 }

// round returns the rounded number. Its error is the bound plus two standard deviations, which cover 95 of 100 cases.
// An error below a thousandth of a message comes from floating-point arithmetic, so round ignores it.
func (e estimate) round() Amount {
	margin := 2*math.Sqrt(e.variance) + e.bound
	return Amount{Messages: uint64(math.Round(max(0, e.number))), MaxError: uint64(math.Ceil(margin - 0.001))}
}

// addShare adds the share of a slot in messages: that of its hits in the examined messages of a sample. If the sample
// is empty, addShare only increases the variance.
func (t tally) addShare(slot int, messages, hits, examined uint64) {
	total := float64(messages)
	if examined > 0 {
		t[slot].number += total * float64(hits) / float64(examined)
	}
	t[slot].variance += total * total * shareVariance(hits, examined, messages)
}

// shareVariance returns the variance of the share of a slot, estimated from its hits in a sample. It adds two messages
// inside the slot and two outside it (Agresti and Coull), because a slot without a sampled message may still contain
// messages. These four messages shift the middle of the confidence interval. The method round reports two standard
// deviations, so shareVariance increases one standard deviation by half of the shift.
func shareVariance(hits, size, total uint64) float64 {
	if size >= total {
		return 0 // the sample has every message
	}
	middle, shift := float64(hits+2)/float64(size+4), 0.0
	if size > 0 {
		shift = math.Abs(middle - float64(hits)/float64(size))
	}
	deviation := math.Sqrt(middle*(1-middle)/float64(size+4)) + shift/2
	correction := float64(total-size) / float64(max(1, total-1)) // for a finite population
	return deviation * deviation * correction
}

func sum64(numbers []uint64) (sum uint64) {
	for _, v := range numbers {
		sum += v
	}
	return sum
}
