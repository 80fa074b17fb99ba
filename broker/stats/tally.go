package stats

import (
	"sync/atomic"

	"delaybroker/broker/deliver"
	"delaybroker/broker/journal"
	"delaybroker/broker/message"
	"delaybroker/broker/streams"
)

// Tally has the counts that belong to no lane. Its maps do not change. It is safe for concurrent use.
type Tally struct {
	Dead          map[message.Code]*atomic.Uint64 // dead letters stored
	Outcomes      [deliver.Outcomes]atomic.Uint64
	Ours, Foreign atomic.Uint64 // duplicates of the broker's own messages, and of other messages
	Unstored      atomic.Uint64 // refusals by the broker's own streams
	Early, Judged atomic.Uint64 // clock readings that found an early delivery, and all readings that could find one
	Swept         atomic.Uint64 // timers that only a sweep found
	Missed        atomic.Uint64 // rounds of series that were missed and skipped
	Lateness      map[streams.Kind]*Latencies
	Journal       journal.Counts
	Targets       *deliver.Counts
	RecentTargets atomic.Pointer[[]TargetAnswer] // the targets, as of the end of the history's last step
}

// NewTally returns a Tally with zero counts.
func NewTally(rates deliver.Rates) *Tally {
	t := &Tally{
		Dead: make(map[message.Code]*atomic.Uint64), Lateness: make(map[streams.Kind]*Latencies),
		Targets: deliver.NewCounts(rates),
	}
	for _, code := range message.Codes() {
		t.Dead[code] = new(atomic.Uint64)
	}
	for _, kind := range streams.Lanes() {
		t.Lateness[kind] = new(Latencies)
	}
	return t
}

// Read returns the counts so far.
func (t *Tally) Read() Counts {
	c := Counts{
		Outcomes: make(map[string]uint64), Dead: make(map[message.Code]uint64), Lateness: make(map[streams.Kind]Histogram),
		Ours: t.Ours.Load(), Foreign: t.Foreign.Load(), Unstored: t.Unstored.Load(),
		Early: t.Early.Load(), EarlyChecks: t.Judged.Load(), Swept: t.Swept.Load(), Missed: t.Missed.Load(),
	}
	for o := range t.Outcomes {
		c.Outcomes[deliver.Outcome(o).String()] = t.Outcomes[o].Load()
	}
	for code, n := range t.Dead {
		c.Dead[code] = n.Load()
	}
	for kind, h := range t.Lateness {
		c.Lateness[kind] = h.Read()
	}
	c.Targets = readTargets(t.Targets)
	c.Rates = byRate(c.Targets)
	return c
}

// Lane counts the moves and deliveries of one lane. It outlives the lane's workers, since ownership may change.
type Lane struct {
	Spec                              streams.Spec
	Delivered, Hops, Retries, Repeats atomic.Uint64
}

// Read returns the status of a lane with only its counts.
func (c *Lane) Read() LaneStatus {
	return LaneStatus{
		Stream: c.Spec.Stream, Kind: string(c.Spec.Kind), Level: c.Spec.Name, Delay: c.Spec.Delay,
		Moves: Moves{
			Delivered: c.Delivered.Load(), Hops: c.Hops.Load(), Retries: c.Retries.Load(), Repeats: c.Repeats.Load(),
		},
	}
}
