package history

import (
	"slices"
	"time"
)

// Unknown is the value of a step without data: the instance did not run, or did not report.
const Unknown = -1

const (
	// maxInStep is the maximum count of a step that Add accepts from another instance. It is far above any true count of
	// five minutes.
	maxInStep = 1 << 40
	// maxBuckets is the maximum number of buckets that Add accepts. It limits the memory for another instance's report.
	maxBuckets = 64
)

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

// Add adds another instance's steps to the steps of the same time. Add does not trust other: it ignores a series whose
// steps have another length or other boundaries, steps outside the interval of s, and buckets beyond
// maxBuckets. It also ignores a number above maxInStep, but in a bucket it adds maxInStep instead.
func (s *Series) Add(other Series) {
	if other.Step != s.Step || s.Step == 0 || (other.From-s.From)%int64(s.Step) != 0 {
		return
	}
	shift := (other.From - s.From) / int64(s.Step)
	n := min(len(other.Delivered), len(other.Refused), len(other.Pending), len(other.Late))
	for i := range n {
		step := int64(i) + shift
		if step < 0 || step >= int64(len(s.Delivered)) {
			continue
		}
		addCount(&s.Delivered[step], other.Delivered[i])
		addCount(&s.Refused[step], other.Refused[i])
		addCount(&s.Pending[step], other.Pending[i])
		for len(s.Late[step]) < min(len(other.Late[i]), maxBuckets) {
			s.Late[step] = append(s.Late[step], 0)
		}
		for bucket := range min(len(other.Late[i]), maxBuckets) {
			s.Late[step][bucket] += min(other.Late[i][bucket], maxInStep)
		}
	}
}

func addCount(sum *int64, n int64) {
	if n < 0 || n > maxInStep {
		return
	}
	*sum = max(*sum, 0) + n
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
