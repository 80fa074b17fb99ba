package inspect

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"delaybroker/broker/message"
)

const (
	// MostBuckets bounds a forecast: a day by minutes, two months by hours.
	MostBuckets = 1440
	// smallLane is how many messages a lane may have that is read without counting first: to count costs as much.
	smallLane = 1000
)

// AheadLook says what a forecast is about.
type AheadLook struct {
	For    time.Duration // how far ahead
	By     time.Duration // the length of a bucket; they begin at full minutes or hours
	Target string        // a pattern; empty for all
	Most   uint64        // messages to read; where there are more, they are counted by their order and sampled
	Sample uint64        // messages in the sample of a stream at most; zero for sampleMost

	draw func(n uint64) uint64 // a number below n; nil for chance
	cuts int                   // questions for the places of buckets at most; zero for mostCuts
}

// Forecast says how many messages are due when. It is of the messages that were pending at Time.
type Forecast struct {
	Time    time.Time `json:"time"` // by the server's clock
	Until   time.Time `json:"until"`
	Pending uint64    `json:"pending"` // for the target

	Overdue Amount   `json:"overdue"` // due already: being delivered, or nobody reads their lane
	Buckets []Bucket `json:"buckets"`
	Later   Amount   `json:"later"` // due after Until
	// Unreadable are about to become dead letters, or were written by a newer broker.
	Unreadable Amount `json:"unreadable"`
	Unplaced   uint64 `json:"unplaced"` // it is not known when these are due: no sample met any of them

	Exact bool `json:"exact"`
	Work

	Parts  []Part   `json:"parts"`
	Silent []string `json:"silent,omitempty"` // streams that did not answer, or cannot be understood
	Unread int      `json:"unread"`           // lanes that nobody reads: what is in them will be late
	Bare   bool     `json:"header_targets"`   // targets may stand in a header, which no pattern finds
}

// Work is what a forecast rests on.
type Work struct {
	Read      uint64 `json:"read"`      // messages whose headers were all read
	Ordered   uint64 `json:"ordered"`   // messages counted by the order of their level; sampled too
	Sampled   uint64 `json:"sampled"`   // messages looked at as a sample
	Of        uint64 `json:"of"`        // messages that the sample stands for
	Questions int    `json:"questions"` // counts that the server was asked for
}

// Amount is a number of messages.
type Amount struct {
	Messages uint64 `json:"messages"`
	Within   uint64 `json:"within"` // it is off by no more, in 95 of 100 cases; zero is exact
}

// Bucket is how many messages are due from a time on, until before another.
type Bucket struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	Amount
}

// Ahead forecasts how many pending messages are due when. It reads no more messages than it may. Where a lane has more,
// the order of the lane says when its messages leave, and a sample which of them go on from there, and until when.
// A message that moves to another lane meanwhile may be counted twice, or not at all.
func (i *Inspector) Ahead(ctx context.Context, look AheadLook) (Forecast, error) {
	v, err := i.Look(ctx, 0)
	if err != nil {
		return Forecast{}, err
	}
	if look.draw == nil {
		look.draw = rand.Uint64N
	}
	look.Sample, look.cuts = cmp.Or(look.Sample, sampleMost), cmp.Or(look.cuts, mostCuts)
	f := forecast{
		Inspector: i, look: look, slots: newSlots(v.Time, look), left: look.Most,
		samples: make(map[place]sample),
		all:     Forecast{Time: v.Time, Until: v.Time.Add(look.For), Unread: v.Totals.Unread, Parts: []Part{}},
	}
	f.tally = make(tally, f.slots.number())
	allowed, cancel := i.Allowed(ctx)
	defer cancel()
	if err := f.run(allowed, v); err != nil {
		return Forecast{}, Cause(allowed, err)
	}
	return f.result(), nil
}

// A forecast goes through the lanes.
type forecast struct {
	*Inspector
	look   AheadLook
	reader reader
	slots  slots
	tally  tally
	left   uint64 // messages that may still be read

	samples map[place]sample
	all     Forecast
}

// run reads what is small, and estimates the rest.
func (f *forecast) run(ctx context.Context, v Lanes) error {
	var lanes []Lane
	lanes, f.all.Silent, f.all.Bare = f.holding(v)
	f.reader = reader{f.reading(f.all.Bare), f.look.Target}
	slices.SortFunc(lanes, func(a, b Lane) int { return cmp.Compare(a.Pending, b.Pending) })
	var strata []*stratum
	for _, l := range lanes {
		if l.Pending <= min(f.left, smallLane) {
			for _, s := range f.wholly(l) {
				if err := f.read(ctx, s); err != nil {
					return err
				}
			}
			continue
		}
		strata = append(strata, f.strata(l)...)
	}
	if err := f.count(ctx, strata); err != nil {
		return err
	}
	slices.SortFunc(strata, func(a, b *stratum) int { return cmp.Compare(a.headers, b.headers) })
	small := 0
	for small < len(strata) && strata[small].headers <= f.left {
		f.left -= strata[small].headers
		small++
	}
	for _, s := range strata[:small] {
		if err := f.read(ctx, s); err != nil {
			return err
		}
	}
	return f.estimate(ctx, strata[small:])
}

// slot is where a message belongs, with the problem that it has.
func (f *forecast) slot(r message.Request, problem *message.Problem) int {
	if problem != nil {
		return f.slots.unreadable()
	}
	return f.slots.of(r.When())
}

// result turns the tally into what is told.
func (f *forecast) result() Forecast {
	all := f.all
	all.Overdue = f.tally[0].round()
	for n := range len(f.slots.cuts) - 1 {
		all.Buckets = append(all.Buckets, Bucket{f.slots.cuts[n].UTC(), f.slots.cuts[n+1].UTC(), f.tally[n+1].round()})
	}
	all.Later, all.Unreadable = f.tally[f.slots.later()].round(), f.tally[f.slots.unreadable()].round()
	inexact := slices.ContainsFunc(f.tally, func(e estimate) bool { return e.round().Within > 0 })
	leftOut := all.Unplaced > 0 || len(all.Silent) > 0 || all.Bare && f.look.Target != ""
	all.Exact = !inexact && !leftOut
	slices.SortFunc(all.Parts, func(a, b Part) int { return cmp.Compare(b.Messages, a.Messages) })
	return all
}
