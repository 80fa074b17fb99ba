package history

import (
	"slices"
	"time"
)

// Unknown is the value of a step without data: no instance was active, or none recorded a history.
const Unknown = -1

// Series has the counts of consecutive steps of one length, the oldest first. Each slice has one value for each step.
type Series struct {
	Step      int        `json:"step"` // seconds
	From      int64      `json:"from"` // beginning of the first step, in unix seconds
	Delivered []int64    `json:"delivered"`
	Refused   []int64    `json:"refused"`
	Pending   []int64    `json:"pending"` // pending messages at the end of the step
	Late      [][]uint64 `json:"late"`    // deliveries by bucket of lateness; null for an unknown step
}

func newSeries(length time.Duration, firstStep int64, steps int) Series {
	unknown := func() []int64 { return slices.Repeat([]int64{Unknown}, steps) }
	return Series{
		Step: int(length / time.Second), From: firstStep * int64(length/time.Second),
		Delivered: unknown(), Refused: unknown(), Pending: unknown(), Late: make([][]uint64, steps),
	}
}

// Quantile estimates the lateness that the given share of the deliveries did not exceed. Late has the number of
// deliveries by bucket. Bounds has the upper bound of each bucket except the last one, which has none. Within a bucket
// the estimate is linear, and in the last bucket it is the last of the bounds. Ok is false if there was no delivery, or
// if there are no bounds.
func Quantile(late []uint64, bounds []time.Duration, share float64) (d time.Duration, ok bool) {
	var total uint64
	for _, n := range late {
		total += n
	}
	if total == 0 || len(bounds) == 0 {
		return 0, false
	}
	rank, below := share*float64(total), 0.0
	var low time.Duration
	for i, n := range late {
		if i >= len(bounds) {
			break
		}
		if size := float64(n); n > 0 && below+size >= rank {
			return low + time.Duration(float64(bounds[i]-low)*(rank-below)/size), true
		}
		below += float64(n)
		low = bounds[i]
	}
	return bounds[len(bounds)-1], true
}
