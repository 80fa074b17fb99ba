package stats

import (
	"sync/atomic"

	"delaybroker/broker/deliver"
	"delaybroker/broker/message"
	"delaybroker/broker/streams"
)

// Tally has the counts that belong to no lane: see Counts. Its maps do not change. It is safe for concurrent use.
type Tally struct {
	DeadLetters       map[message.Code]*atomic.Uint64
	Outcomes          [deliver.Outcomes]atomic.Uint64
	OwnDuplicates     atomic.Uint64
	ForeignDuplicates atomic.Uint64
	Unstored          atomic.Uint64
	EarlyReadings     atomic.Uint64
	EarlyChecks       atomic.Uint64
	SweptTimers       atomic.Uint64
	MissedRounds      atomic.Uint64
	PausedSeries      atomic.Uint64
	Lateness          map[streams.Kind]*Latencies
	Targets           *deliver.Counts
}

// NewTally returns a Tally with zero counts.
func NewTally(rates deliver.Rates) *Tally {
	t := &Tally{
		DeadLetters: make(map[message.Code]*atomic.Uint64), Lateness: make(map[streams.Kind]*Latencies),
		Targets: deliver.NewCounts(rates),
	}
	for _, code := range message.Codes() {
		t.DeadLetters[code] = new(atomic.Uint64)
	}
	for _, kind := range streams.LaneKinds() {
		t.Lateness[kind] = new(Latencies)
	}
	return t
}

// Read returns the counts so far.
func (t *Tally) Read() Counts {
	c := Counts{
		Outcomes: make(map[string]uint64), DeadLetters: make(map[message.Code]uint64),
		Lateness:      make(map[streams.Kind]Histogram),
		OwnDuplicates: t.OwnDuplicates.Load(), ForeignDuplicates: t.ForeignDuplicates.Load(), Unstored: t.Unstored.Load(),
		EarlyReadings: t.EarlyReadings.Load(), EarlyChecks: t.EarlyChecks.Load(),
		SweptTimers: t.SweptTimers.Load(), MissedRounds: t.MissedRounds.Load(),
		PausedSeries: t.PausedSeries.Load(),
	}
	for o := range t.Outcomes {
		c.Outcomes[deliver.Outcome(o).String()] = t.Outcomes[o].Load()
	}
	for code, n := range t.DeadLetters {
		c.DeadLetters[code] = n.Load()
	}
	for kind, h := range t.Lateness {
		c.Lateness[kind] = h.Read()
	}
	c.Targets = readTargets(t.Targets)
	c.Rates = sumByRate(c.Targets)
	return c
}

// LaneCounts counts the moves and deliveries of one lane. It outlives the lane's workers, because another
// instance may become active, and then this one again.
type LaneCounts struct {
	Spec                              streams.Spec
	Delivered, Hops, Retries, Repeats atomic.Uint64
}

// Read returns the status of a lane with only its counts.
func (c *LaneCounts) Read() LaneStatus {
	return LaneStatus{
		Stream: c.Spec.Stream, Kind: string(c.Spec.Kind), Level: c.Spec.Name, Delay: c.Spec.Delay,
		Moves: Moves{
			Delivered: c.Delivered.Load(), Hops: c.Hops.Load(), Retries: c.Retries.Load(), Repeats: c.Repeats.Load(),
		},
	}
}
