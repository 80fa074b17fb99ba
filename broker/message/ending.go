package message

import "time"

// Ending is how one message ended: it was delivered, or became a dead letter.
type Ending struct {
	ID     string // Delay-Id
	Target string // empty where a dead letter has none
	// At is when the target had it, as package deliver defines that, or when the dead letter was stored; by the clock of
	// the leader of the message's lane.
	At time.Time
	// Due is zero where the request was not understood.
	Due time.Time
	// Late is how long At is after due or, where the target's rate gave the message a later turn, after that turn.
	Late    time.Duration
	Refused int    // deliveries that the target refused
	Code    Code   // of a dead letter; empty for a delivery
	Reason  string // of a dead letter; otherwise why the target refused last, if it did

	// Series is the generation of the first set of a timer that recurs, and Round the number of the round, from 1. Both
	// are zero for any other message.
	Series uint64
	Round  int
}

// Attempts is how many deliveries there were that the target answered.
func (e Ending) Attempts() int {
	if e.Code == "" {
		return e.Refused + 1
	}
	return e.Refused
}
