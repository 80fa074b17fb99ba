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
	// MaxBuckets is the maximum number of buckets of a forecast. It allows one day by minutes, or two months by hours.
	MaxBuckets = 1440
	// smallLane is the maximum number of messages of a lane that is read without a count first. The count costs as
	// much.
	smallLane = 1000
)

// AheadLook is the query of a forecast.
type AheadLook struct {
	For    time.Duration // length of the forecast
	By     time.Duration // length of a bucket; buckets begin at full minutes or hours
	Target string        // a pattern; empty for all
	Most   uint64        // maximum number of messages to read; larger lanes are counted by their order and sampled
	Sample uint64        // maximum sample of a stream, in messages; zero for sampleMost

	draw func(n uint64) uint64 // returns a number below n; nil for random numbers
	cuts int                   // maximum number of requests for the limits of buckets; zero for maxCuts
}

// Forecast is the number of messages due in each interval. It covers the messages that were pending at Time.
type Forecast struct {
	Time    time.Time `json:"time"` // by the server's clock
	Until   time.Time `json:"until"`
	Step    float64   `json:"step_seconds"` // length of a bucket; the first may be shorter
	Pending uint64    `json:"pending"`      // number of messages for the target

	Overdue Amount   `json:"overdue"` // due before Time: in delivery, or in a lane without a reader
	Buckets []Bucket `json:"buckets"`
	Later   Amount   `json:"later"` // due after Until
	// Unreadable messages will become dead letters, or wait for a newer broker that can read them.
	Unreadable Amount `json:"unreadable"`
	Unplaced   uint64 `json:"unplaced"` // messages of a lane with an empty sample, so their due times are unknown

	Exact bool `json:"exact"`
	Work

	Parts  []Part   `json:"parts"`
	Silent []string `json:"silent,omitempty"` // streams that did not answer, or that this program cannot read
	Unread int      `json:"unread"`           // lanes without a reader; their messages will be late
	Bare   bool     `json:"header_targets"`   // targets may be in a header, which a pattern cannot match
}

// Work is the basis of a forecast.
type Work struct {
	Read      uint64 `json:"read"`      // messages of the lanes that were read completely
	Ordered   uint64 `json:"ordered"`   // messages counted by the order of their level; some are also in Sampled
	Sampled   uint64 `json:"sampled"`   // messages in the samples
	Of        uint64 `json:"of"`        // messages that the samples represent
	Questions int    `json:"questions"` // counts requested from the server
}

// Amount is a number of messages.
type Amount struct {
	Messages uint64 `json:"messages"`
	Within   uint64 `json:"within"` // maximum error at 95 % confidence; zero if Messages is exact
}

// Bucket is the number of messages due from From, inclusive, to To, exclusive.
type Bucket struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	Amount
}

// Ahead forecasts the number of pending messages by due time. It reads at most look.Most messages. In a larger lane it
// counts by the order, which gives the times at which messages leave the lane. From a sample it estimates how many of
// these messages are due later, and when. A message that moves to another lane during the call may be counted twice, or
// not at all.
func (i *Inspector) Ahead(ctx context.Context, look AheadLook) (Forecast, error) {
	v, err := i.Look(ctx, 0)
	if err != nil {
		return Forecast{}, err
	}
	if look.draw == nil {
		look.draw = rand.Uint64N
	}
	look.Sample, look.cuts = cmp.Or(look.Sample, sampleMost), cmp.Or(look.cuts, maxCuts)
	f := forecast{
		Inspector: i, look: look, slots: newSlots(v.Time, look), left: look.Most,
		samples: make(map[place]sample),
		all: Forecast{
			Time: v.Time, Until: v.Time.Add(look.For), Step: look.By.Seconds(), Unread: v.Totals.Unread, Parts: []Part{},
		},
	}
	f.tally = make(tally, f.slots.number())
	allowed, cancel := i.Allowed(ctx)
	defer cancel()
	if err := f.run(allowed, v); err != nil {
		return Forecast{}, Cause(allowed, err)
	}
	return f.result(), nil
}

// A forecast is the state of one call of Ahead.
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

// run reads the small lanes, and counts or samples the others.
func (f *forecast) run(ctx context.Context, v Lanes) error {
	var lanes []Lane
	lanes, f.all.Silent, f.all.Bare = f.holding(v)
	f.reader = reader{f.reading(f.all.Bare), f.look.Target}
	slices.SortFunc(lanes, func(a, b Lane) int { return cmp.Compare(a.Pending, b.Pending) })
	var segments []*segment
	for _, l := range lanes {
		if l.Pending <= min(f.left, smallLane) {
			for _, s := range f.wholly(l) {
				if err := f.read(ctx, s); err != nil {
					return err
				}
			}
			continue
		}
		segments = append(segments, f.segments(l)...)
	}
	if err := f.count(ctx, segments); err != nil {
		return err
	}
	slices.SortFunc(segments, func(a, b *segment) int { return cmp.Compare(a.headers, b.headers) })
	small := 0
	for small < len(segments) && segments[small].headers <= f.left {
		f.left -= segments[small].headers
		small++
	}
	for _, s := range segments[:small] {
		if err := f.read(ctx, s); err != nil {
			return err
		}
	}
	return f.estimate(ctx, segments[small:])
}

// slot returns the slot of a message.
func (f *forecast) slot(r message.Request, problem *message.Problem) int {
	if problem != nil {
		return f.slots.unreadable()
	}
	return f.slots.of(r.When())
}

// result converts the tally into a Forecast.
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
