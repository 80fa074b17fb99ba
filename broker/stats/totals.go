package stats

import (
	"slices"
	"time"

	"delaybroker/broker/deliver"
	"delaybroker/broker/stats/history"
	"delaybroker/broker/streams"
)

// Totals are counts since an instance started.
type Totals struct {
	Started     time.Time `json:"started"`
	Delivered   uint64    `json:"delivered"`
	Refused     uint64    `json:"refused"` // attempts that a target refused
	DeadLetters uint64    `json:"dead_letters"`
}

// HistoryCounts returns the counts that a history records.
func (s Status) HistoryCounts() history.Counts {
	c := history.Counts{Late: make([]uint64, len(latenessBounds)+1)}
	t := s.Totals(time.Time{})
	c.Delivered, c.Refused = t.Delivered, t.Refused
	for _, l := range s.Lanes {
		if l.Owned && streams.Kind(l.Kind) != streams.Timers { // each pending timer has a marker in a level
			c.Pending += l.Pending
		}
	}
	for _, kind := range streams.LaneKinds() {
		if kind.WaitsForTarget() {
			continue
		}
		var below uint64
		h := s.Lateness[kind]
		for i, bucket := range h.Buckets {
			c.Late[i] += bucket.Count - below
			below = bucket.Count
		}
		c.Late[len(latenessBounds)] += h.Count - below
	}
	return c
}

// Totals returns the counts since an instance started.
func (s Status) Totals(started time.Time) *Totals {
	t := &Totals{
		Started: started.UTC(), Delivered: s.Outcomes[deliver.Delivered.String()],
		Refused: s.Outcomes[deliver.Refused.String()],
	}
	for _, n := range s.DeadLetters {
		t.DeadLetters += n
	}
	return t
}

// LatenessBounds returns the upper bounds of the buckets of lateness. The last bucket has no bound.
func LatenessBounds() []time.Duration { return slices.Clone(latenessBounds[:]) }
