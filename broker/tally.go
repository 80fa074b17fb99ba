package broker

import (
	"encoding/json"
	"slices"
	"sync/atomic"
	"time"

	"delaybroker/broker/deliver"
	"delaybroker/broker/journal"
	"delaybroker/broker/layout"
	"delaybroker/broker/message"
)

// tally holds the counts that are not of one lane. Its maps do not change.
type tally struct {
	dead          map[message.Code]*atomic.Uint64 // dead letters stored
	outcomes      [deliver.Outcomes]atomic.Uint64
	ours, foreign atomic.Uint64 // duplicates that were looked at
	unstored      atomic.Uint64 // refusals by our own streams
	early, judged atomic.Uint64
	swept         atomic.Uint64 // timers that only a sweep has found
	lateness      map[layout.Kind]*latencies
	journal       journal.Counts
}

func newTally() *tally {
	t := &tally{dead: make(map[message.Code]*atomic.Uint64), lateness: make(map[layout.Kind]*latencies)}
	for _, code := range message.Codes() {
		t.dead[code] = new(atomic.Uint64)
	}
	for _, kind := range layout.Lanes() {
		t.lateness[kind] = new(latencies)
	}
	return t
}

// laneCount counts the moves and deliveries of one lane. It outlives its workers: a lane may go and come back.
type laneCount struct {
	lane                              layout.Spec
	delivered, hops, retries, repeats atomic.Uint64
}

func (c *laneCount) status() LaneStatus {
	return LaneStatus{
		Stream: c.lane.Stream, Kind: string(c.lane.Kind), Level: c.lane.Name, Delay: c.lane.Delay,
		Delivered: c.delivered.Load(), Hops: c.hops.Load(), Retries: c.retries.Load(), Repeats: c.repeats.Load(),
	}
}

// latenessBounds are the upper bounds of the buckets: milliseconds matter at one end, and hours after an outage at the
// other.
var latenessBounds = [...]time.Duration{
	time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond,
	10 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second,
	10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour,
}

// latencies counts durations. It is safe for concurrent use; a reader may see one observation in part.
type latencies struct {
	buckets [len(latenessBounds) + 1]atomic.Uint64 // each without those before; the last has no bound
	sum     atomic.Int64
}

func (h *latencies) observe(d time.Duration) {
	i, _ := slices.BinarySearch(latenessBounds[:], d)
	h.buckets[i].Add(1)
	h.sum.Add(int64(d))
}

// Histogram is how many durations there were, and how many up to each bound.
type Histogram struct {
	Count   uint64        `json:"count"`
	Sum     time.Duration `json:"sum"`
	Buckets []Bucket      `json:"buckets"`
}

// Bucket counts the durations of UpTo and less.
type Bucket struct {
	UpTo  time.Duration `json:"up_to"`
	Count uint64        `json:"count"`
}

func (h *latencies) read() Histogram {
	r := Histogram{Sum: time.Duration(h.sum.Load())}
	for i := range h.buckets {
		r.Count += h.buckets[i].Load()
		if i < len(latenessBounds) {
			r.Buckets = append(r.Buckets, Bucket{latenessBounds[i], r.Count})
		}
	}
	return r
}

// MarshalJSON writes the sum in seconds.
func (h Histogram) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{"count": h.Count, "sum": h.Sum.Seconds(), "buckets": h.Buckets})
}

// MarshalJSON writes the bound in seconds.
func (b Bucket) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{"up_to": b.UpTo.Seconds(), "count": b.Count})
}
