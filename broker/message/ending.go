package message

import "time"

// Ending is the end of one message: its delivery, or its dead letter.
type Ending struct {
	ID     string // Delay-Id
	Target string // empty for a dead letter without a target
	// At is the time of delivery, as package deliver defines it, or the time at which the dead letter was stored, by the
	// clock of the leader of the message's lane.
	At time.Time
	// Due is zero if the broker could not parse the time in the request.
	Due time.Time
	// Lateness is At minus Due. If the target's rate gave the message a later send time, Lateness is At minus the send
	// time.
	Lateness time.Duration
	Refusals int    // number of deliveries that the target refused
	Code     Code   // of a dead letter; empty for a delivery
	Reason   string // of a dead letter; for a delivery the reason of the last refusal, if any

	// Series is the generation of a recurring timer's set, and Round the number of the round, from 1. Both are zero for
	// any other message.
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
