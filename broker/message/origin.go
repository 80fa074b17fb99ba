package message

import (
	"strconv"
	"strings"
)

// Origin is the series of rounds, or the schedule, that a message comes of. It travels with the message, and its
// consumer reads it. The zero Origin is that of all other messages.
type Origin struct {
	Series uint64 // of a timer that recurs: the generation of its first set; zero of any other
	Round  int    // likewise: its number, from 1

	Scheduler    string // the subject of the schedule; empty for what is no schedule's
	ScheduleNext string // when that fires again, for its consumer
	Rollup       bool   // Nats-Rollup "sub" at the target
}

// RollupSub is the only value of HeaderRollup.
const RollupSub = "sub"

// Origin is what the message comes of.
func (r Request) Origin() Origin {
	if r.origin == nil {
		return Origin{}
	}
	return *r.origin
}

// WithOrigin is the request of a message that comes of a series or a schedule.
func (r Request) WithOrigin(o Origin) Request {
	if r.origin = nil; o != (Origin{}) {
		r.origin = &o
	}
	return r
}

// identify writes which round of a series it is.
func (o *Origin) identify(h Header) {
	if o != nil && o.Series > 0 {
		Put(h, HeaderSeries, strconv.FormatUint(o.Series, 10))
		PutCount(h, HeaderRound, o.Round)
	}
}

// put writes what a message of a schedule says besides, with its roll-up under a name.
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

// origin reads what identify and put have written.
func (f *Fields) origin() *Origin {
	o := Origin{
		Series: f.Sequence(HeaderSeries), Round: f.Count(HeaderRound, Optional),
		Scheduler: f.Text(HeaderScheduler), ScheduleNext: f.Token(HeaderScheduleNext),
		Rollup: strings.EqualFold(f.Text(HeaderRollup), RollupSub),
	}
	if o == (Origin{}) {
		return nil
	}
	kept := o // o itself stays off the heap: most messages have none
	return &kept
}
