package message

import (
	"strconv"
	"strings"
)

// Origin identifies the recurring timer, or the schedule, that produced a message. A message without either has the
// zero Origin.
type Origin struct {
	Series uint64 // generation of a recurring timer's set; zero unless the timer recurs
	Round  int    // number of the round, from 1; zero unless the timer recurs

	Scheduler    string // the subject of the schedule; empty without a schedule
	ScheduleNext string // the value of Delay-Schedule-Next
	Rollup       bool   // the message gets Nats-Rollup "sub" at the target
}

// RollupSub is the only valid value of HeaderRollup.
const RollupSub = "sub"

// Origin returns the origin of the message.
func (r Request) Origin() Origin {
	if r.origin == nil {
		return Origin{}
	}
	return *r.origin
}

// WithoutRollup returns the request without Nats-Rollup at the target, which could delete messages there.
func (r Request) WithoutRollup() Request {
	o := r.Origin()
	o.Rollup = false
	return r.WithOrigin(o)
}

// WithOrigin returns the request with another origin.
func (r Request) WithOrigin(o Origin) Request {
	if r.origin = nil; o != (Origin{}) {
		r.origin = &o
	}
	return r
}

func (o *Origin) identify(h Header) {
	if o != nil && o.Series > 0 {
		Put(h, HeaderSeries, strconv.FormatUint(o.Series, 10))
		PutCount(h, HeaderRound, o.Round)
	}
}

// put writes the headers of a schedule's message, with the roll-up under the given name.
func (o *Origin) put(h Header, rollup string) {
	if o == nil {
		return
	}
	Put(h, HeaderScheduler, o.Scheduler)
	Put(h, HeaderScheduleNext, o.ScheduleNext)
	if o.Rollup {
		Put(h, rollup, RollupSub)
	}
}

// origin parses the headers that identify and put write.
func (f *Fields) origin() *Origin {
	o := Origin{
		Series: f.Sequence(HeaderSeries), Round: f.Count(HeaderRound, Optional),
		Scheduler: f.Text(HeaderScheduler), ScheduleNext: f.Token(HeaderScheduleNext),
		Rollup: strings.EqualFold(f.Text(HeaderRollup), RollupSub),
	}
	if o == (Origin{}) {
		return nil
	}
	result := o // so that o stays off the heap: most messages have no origin
	return &result
}
