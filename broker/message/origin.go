package message

// Origin identifies the recurring timer, or the schedule, that produced a message. A message without either has the
// zero Origin.
type Origin struct {
	Series uint64 // generation of a recurring timer's set; zero unless the timer recurs
	Round  int    // number of the round, from 1; zero unless the timer recurs

	PauseAfter  int // Delay-Pause-After: so many dead letters in a row pause the series; zero for never
	Failures    int // of the pending round: the number of consecutive rounds up to FailedRound that became dead letters
	FailedRound int // of the pending round: the latest round that became a dead letter; zero for none

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
		stored := o // so that o stays off the heap: most messages have no origin
		r.origin = &stored
	}
	return r
}
