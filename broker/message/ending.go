package message

import "time"

// Ending is the end of one message: its delivery, or its dead letter.
type Ending struct {
	ID     string // Delay-Id
	Target string // empty for a dead letter without a target
	// At is the time of delivery, which package deliver defines, or the time at which the dead letter was stored. The time
	// is by the clock of the leader of the message's lane.
	At time.Time
	// Due is zero for a dead letter whose requested due time is unknown: see Letter.DueKnown.
	Due time.Time
	// Lateness is never negative. It counts from Due or, if the message waited for the target's rate or for the end of a
	// pause, from the end of that wait. It is zero if Due is zero.
	Lateness time.Duration
	Refusals int    // number of deliveries that the target refused
	Code     Code   // of a dead letter; empty for a delivery
	Reason   string // of a dead letter; for a delivery the reason of the last refusal, if any

	// Series and Round are those of Origin.
	Series uint64
	Round  int
}

// Attempts returns the number of refusals, plus one for a delivered message.
func (e Ending) Attempts() int {
	if e.Code == "" {
		return e.Refusals + 1
	}
	return e.Refusals
}
