package role

import (
	"errors"
	"time"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/leader"
	"delaybroker/broker/message"
)

const (
	// armAfter is how long a set waits in memory before its marker is sent, but at most half of its delay. A timer that is
	// reset within that time costs no marker for the set that was replaced. A round waits for armRoundAfter only: rounds
	// are rarely replaced, and many are stored at one instant.
	armAfter      = 10 * time.Second
	armRoundAfter = time.Second
	// readAhead is how long before it is due the body of a timer is read, by its marker: longer than a request takes, and
	// a leader after it. Those that are due within readTogether are read in one request.
	readAhead    = 1500 * time.Millisecond
	readTogether = 500 * time.Millisecond
	// OtherFlight is how soon a timer is looked at again that another message of this process is about to fire.
	OtherFlight = time.Second
)

// Step is the next thing to do with a timer.
type Step struct {
	Kind   Kind
	At     leader.Time      // Hold
	Why    *message.Problem // Dead
	Err    error            // Repeat: why there was no answer
	Reason string           // BackOff: why the stream refuses, for the log; empty if it does not
}

// Kind is one of a closed set.
type Kind int

// The steps.
const (
	AsAny   Kind = iota // it is decided about as any message
	Hold                // until then
	BackOff             // for a while that grows
	Repeat              // what was not answered, as soon as there is a connection
	Examine             // read its own entry from a replica, if it is Fresh, or the last of its subject from the leader
	Claim               // store that it fires
	Precede             // ask whether the rounds before are settled or, of a debounced set, when its run has begun
	Restart             // decide by its own entry, which has been read
	Deliver             // that it fires is stored
	Remove              // its entry
	LetGo               // there is nothing left to do
	Dead                // to the dead letters
)

// Moment is the situation in which a timer is decided about.
type Moment struct {
	Now     leader.Time
	Proven  bool // the leader's clock has reached that time for certain
	Crowded bool // many messages are in memory already
	Own     bool // in the timers' own lane
	Last    bool // the lane is the last one that it is in before it is due
}

// Message is what a decision needs of the message.
type Message struct {
	Stored leader.Time
	When   leader.Time // it is to be delivered
	Bad    bool        // it cannot be delivered
}

// Next decides about a timer whose time on the wheel has come, or that was just read.
func (a *Alarm) Next(m Moment, of Message) Step {
	switch {
	case a.Stage == Settled && a.Entry != 0:
		return Step{Kind: Remove}
	case a.Stage == Settled, a.Superseded && a.Stage == Pending:
		return Step{Kind: LetGo}
	case a.Stage == Fired, of.Bad:
		return Step{}
	}
	left, read := of.When.Sub(m.Now), of.When.Add(-readAhead).Truncate(readTogether)
	switch armed := a.armedAt(of); {
	case a.fresh && m.Last && m.Now.Before(read):
		return Step{Kind: Hold, At: read}
	case a.fresh && m.Last:
		return Step{Kind: Examine}
	case left > 0 && a.Stage == Pending && a.Later && a.Loaded && !a.asked:
		return Step{Kind: Precede}
	case left <= 0 && m.Proven && a.Stage == Pending && (a.Later || a.bounded(of.When)):
		return Step{Kind: Precede}
	case left <= 0 && m.Proven && a.Stage == Pending:
		return Step{Kind: Claim}
	case left <= 0 && m.Proven:
		return Step{Kind: Examine}
	case m.Own && !m.Crowded && !m.Last && m.Now.Before(armed):
		return Step{Kind: Hold, At: armed}
	}
	return Step{}
}

// armedAt is when the marker of a set is sent.
func (a *Alarm) armedAt(of Message) leader.Time {
	wait := armAfter
	if a.recurs != nil {
		wait = armRoundAfter
	}
	return of.Stored.Add(min(wait, of.When.Sub(of.Stored)/2))
}

// Answer is the answer of the timers' stream to a publish.
type Answer jsapi.Reply

func (a Answer) outcome() jsapi.Outcome { return jsapi.Reply(a).Outcome() }

// wins reports whether the answer to a publish that expects a generation says that it is stored.
func (a Answer) wins(generation uint64) bool {
	return a.outcome() == jsapi.Stored && a.Ack.Sequence > generation
}

// refusal reports whether the publish is certainly not stored.
func (a Answer) refusal() bool { return a.outcome().Final() }

// unclear reports whether a firing may be stored although the answer does not say so, or another entry may be.
func (a Answer) unclear() bool {
	return !a.refusal() || a.outcome() == jsapi.Conflict || a.outcome() == jsapi.Undecided
}

// Claimed notes the answer to what Stream.Firing made, and reports whether a firing is stored.
func (a *Alarm) Claimed(answer Answer) (won bool) {
	switch {
	case answer.wins(a.Generation) && a.ends == passes:
		a.missed(answer.Ack.Sequence)
	case answer.wins(a.Generation):
		a.Won(answer.Ack.Sequence)
		if a.ends == over && a.cleared { // it expected the generation, so nothing stands between
			a.Fired = answer.Ack.Sequence
		}
		return true
	case answer.unclear():
		a.Stage = Doubt
	}
	return false
}

// AfterClaim decides when the timers' stream has answered a firing, or the answer did not come. What is not certain is
// looked at: see unclear. Size is that of the body.
func (s *Stream) AfterClaim(a *Alarm, size int, answer Answer) Step {
	switch {
	case a.Stage == Settled:
		return Step{Kind: Remove}
	case answer.wins(a.Generation):
		return Step{Kind: Deliver}
	case answer.Err != nil:
		return Step{Kind: Repeat, Err: answer.Err}
	case answer.outcome() == jsapi.TooLarge:
		return Step{Kind: Dead, Why: s.TooLargeToFire(a, size)}
	case answer.outcome() == jsapi.Conflict:
		return Step{Kind: Examine}
	}
	next := Step{Kind: BackOff}
	if answer.refusal() && answer.outcome() != jsapi.Undecided {
		next.Reason = answer.Ack.Description
	}
	return next
}

// AfterOutcome notes the answer to the entry that records the outcome of a timer, and decides the next step.
func (a *Alarm) AfterOutcome(answer Answer) Step {
	switch {
	case answer.wins(a.Entry):
		a.Entry, a.Keep, a.What = answer.Ack.Sequence, true, ""
	case answer.outcome() == jsapi.Conflict:
		// Somebody has set it anew or cancelled, or it is told already, by an earlier try or another alarm of ours,
		// which counts what is left out: what is settled goes.
		a.What, a.Left = "", 0
	case answer.unclear():
		return Step{Kind: Repeat, Err: answer.Err}
	default:
		a.What = "" // there is no room to tell; what is settled must go all the same
	}
	return Step{Kind: Remove}
}

// AfterRemoval decides when the entries of a timer that is settled were removed, or were to be. Whatever stands on the
// subject now is none of ours.
//
// A pass of the sweep waits for what it has found, and perhaps has yet to find the round that is on its way: so what
// must stay for that round is left to a later pass.
func (a *Alarm) AfterRemoval(err error) Step {
	if err == nil || errors.Is(err, errUnsettled) && a.Swept() {
		return Step{Kind: LetGo}
	}
	return Step{Kind: Repeat, Err: err}
}
