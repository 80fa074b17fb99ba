package stats

import (
	"encoding/json"
	"slices"
	"sync/atomic"
	"time"
)

// latenessBounds are the upper bounds of the buckets: from milliseconds in normal operation to hours after an outage.
var latenessBounds = [...]time.Duration{
	time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond,
	10 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second,
	10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour,
}

// Latencies counts durations. It is safe for concurrent use. A reader may see an incomplete observation.
type Latencies struct {
	buckets [len(latenessBounds) + 1]atomic.Uint64 // not cumulative; the last bucket has no bound
	sum     atomic.Int64
}

// Observe counts one duration.
func (h *Latencies) Observe(d time.Duration) {
	i, _ := slices.BinarySearch(latenessBounds[:], d)
	h.buckets[i].Add(1)
	h.sum.Add(int64(d))
}

// Histogram has the sum of the durations, and their number, in total and up to each bound.
type Histogram struct {
	Count   uint64        `json:"count"`
	Sum     time.Duration `json:"sum"`
	Buckets []Bucket      `json:"buckets"`
}

// Bucket is the number of durations of at most Bound.
type Bucket struct {
	Bound time.Duration `json:"up_to"`
	Count uint64        `json:"count"`
}

// Read returns the counts so far.
func (h *Latencies) Read() Histogram {
	r := Histogram{Sum: time.Duration(h.sum.Load())}
	for i := range h.buckets {
		r.Count += h.buckets[i].Load()
		if i < len(latenessBounds) {
			r.Buckets = append(r.Buckets, Bucket{latenessBounds[i], r.Count})
		}
	}
	return r
}

// MarshalJSON encodes the sum in seconds.
func (h Histogram) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{"count": h.Count, "sum": h.Sum.Seconds(), "buckets": h.Buckets})
}

// MarshalJSON encodes the bound in seconds.
func (b Bucket) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{"up_to": b.Bound.Seconds(), "count": b.Count})
}
