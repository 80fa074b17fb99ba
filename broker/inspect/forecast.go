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
	// MaxBuckets is the maximum length of a forecast in steps: one day with buckets of a minute, or two months with
	// buckets of an hour.
	MaxBuckets = 1440
	// smallLane is the maximum number of messages in a small lane. The forecast reads a small lane without first counting
	// the messages for the targets of the query, because the count would cost as much as reading.
	smallLane = 1000
)

// ForecastQuery has the parameters of a forecast.
type ForecastQuery struct {
	Length time.Duration // of the forecast, from now
	Step   time.Duration // length of a bucket: a minute or an hour
	Target string        // a pattern; empty for all
	Sample uint64        // maximum sample of a stream, in messages; if zero, maxSample
	// MaxRead is the maximum number of messages to read, in addition to the samples.
	MaxRead uint64

	draw    func(n uint64) uint64 // returns a random number below n; if nil, rand.Uint64N
	maxCuts int                   // see the constant maxCuts, which is the default
}

// Forecast is the number of messages due in each interval. It covers the messages that were pending at Time.
type Forecast struct {
	Time    time.Time `json:"time"` // by the server's clock
	Until   time.Time `json:"until"`
	Step    float64   `json:"step_seconds"` // length of a bucket; the first bucket may be shorter
	Pending uint64    `json:"pending"`      // number of messages for the targets of the query

	Overdue Amount   `json:"overdue"` // due before Time
	Buckets []Bucket `json:"buckets"`
	Later   Amount   `json:"later"` // due at Until or later
	// Unreadable messages will become dead letters, or wait for a newer broker that can read them.
	Unreadable Amount `json:"unreadable"`
	Unplaced   uint64 `json:"unplaced"` // messages with unknown due times: their sample was empty

	Exact bool `json:"exact"`

	// The messages and the requests from which the forecast was computed:
	Read          uint64 `json:"read"`      // messages of the segments that were read completely
	Ordered       uint64 `json:"ordered"`   // messages counted by the order of their level
	Sampled       uint64 `json:"sampled"`   // messages in the samples
	Represented   uint64 `json:"of"`        // messages that the samples represent
	CountRequests int    `json:"questions"` // requests to the server for a count

	SilentStreams []string `json:"silent,omitempty"` // streams that did not answer, or that this program cannot read
	UnreadLanes   int      `json:"unread"`           // lanes without a reader; their messages will be late
	// HeaderTargets is true if messages may have their target in a header. No pattern of targets finds these messages.
	HeaderTargets bool `json:"header_targets"`
}

// Amount is a number of messages.
type Amount struct {
	Messages uint64 `json:"messages"`
	MaxError uint64 `json:"within"` // maximum error, at 95 % confidence; zero if Messages is exact
}

// Bucket is the number of messages due from From, inclusive, to To, exclusive.
type Bucket struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	Amount
}

// Forecast returns the number of pending messages by due time. It reads the smallest lanes completely, as far as
// MaxRead allows. In the other levels, the server counts clients' messages by the times at which they leave the level,
// and a sample gives the share of messages that are due after they leave. For all other messages, a sample gives the
// share in each interval. A message that moves to another lane during the call may be counted twice, or not at all.
func (i *Inspector) Forecast(ctx context.Context, query ForecastQuery) (Forecast, error) {
	v, err := i.Lanes(ctx, 0)
	if err != nil {
		return Forecast{}, err
	}
	if query.draw == nil {
		query.draw = rand.Uint64N
	}
	query.Sample, query.maxCuts = cmp.Or(query.Sample, maxSample), cmp.Or(query.maxCuts, maxCuts)
	f := forecast{
		Inspector: i, query: query, slots: newSlots(v.Time, query), budget: query.MaxRead,
		samples: make(map[sampleKey]sample),
		report: Forecast{
			Time: v.Time, Until: v.Time.Add(query.Length), Step: query.Step.Seconds(),
			UnreadLanes: v.Totals.UnreadLanes,
		},
	}
	f.tally = make(tally, f.slots.count())
	ctx, cancel := i.WithRefusal(ctx)
	defer cancel()
	if err := f.run(ctx, v); err != nil {
		return Forecast{}, Cause(ctx, err)
	}
	return f.finish(), nil
}

// A forecast is the state of one call of Inspector.Forecast.
type forecast struct {
	*Inspector
	query  ForecastQuery
	parser parser
	slots  slots
	tally  tally
	budget uint64 // messages that may still be read

	samples map[sampleKey]sample
	report  Forecast
}

// run reads the small lanes, and then the smallest segments of the other lanes, as far as the budget allows. It
// estimates the remaining segments.
func (f *forecast) run(ctx context.Context, v Lanes) error {
	var lanes []Lane
	lanes, f.report.SilentStreams, f.report.HeaderTargets = f.lanesToRead(v)
	f.parser = parser{f.parsePolicy(f.report.HeaderTargets), f.query.Target}
	slices.SortFunc(lanes, func(a, b Lane) int { return cmp.Compare(a.Pending, b.Pending) })
	var segments []*segment
	for _, l := range lanes {
		if l.Pending <= min(f.budget, smallLane) {
			for _, s := range f.wholeLane(l) {
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
	for small < len(segments) && segments[small].headers <= f.budget {
		f.budget -= segments[small].headers
		small++
	}
	for _, s := range segments[:small] {
		if err := f.read(ctx, s); err != nil {
			return err
		}
	}
	return f.estimate(ctx, segments[small:])
}

func (f *forecast) slot(r message.Request, problem *message.Problem) int {
	if problem != nil {
		return f.slots.unreadableSlot()
	}
	return f.slots.slotOf(r.NextAttempt())
}

func (f *forecast) finish() Forecast {
	report := f.report
	report.Pending, report.Overdue = report.Read+report.Represented, f.tally[0].round()
	for n := range len(f.slots.cuts) - 1 {
		report.Buckets = append(report.Buckets, Bucket{f.slots.cuts[n].UTC(), f.slots.cuts[n+1].UTC(), f.tally[n+1].round()})
	}
	report.Later, report.Unreadable = f.tally[f.slots.laterSlot()].round(), f.tally[f.slots.unreadableSlot()].round()
	inexact := slices.ContainsFunc(f.tally, func(e estimate) bool { return e.round().MaxError > 0 })
	leftOut := report.Unplaced > 0 || len(report.SilentStreams) > 0 || report.HeaderTargets && f.query.Target != ""
	report.Exact = !inexact && !leftOut
	return report
}
