package role

import (
	"errors"
	"time"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/leader"
	"delaybroker/broker/message"
)

const (
	// armAfter is the time for which a set waits in memory before its marker is sent, but at most half of its delay. A
	// timer that is reset within that time costs no marker for the replaced set. A round waits for armRoundAfter only:
	// rounds are rarely replaced, and many are stored at one instant.
	armAfter      = 10 * time.Second
	armRoundAfter = time.Second
	// readAhead is the time before the due time at which a marker's body is read: longer than a request to a replica and
	// one to the leader take. Timers due within readTogether are read in one request.
	readAhead    = 1500 * time.Millisecond
	readTogether = 500 * time.Millisecond
	// OtherFlight is the time after which the worker examines a timer again that another message of this process is about
	// to fire.
	OtherFlight = time.Second
)

// Step is the next step for a timer.
type Step struct {
	Kind   Kind
	At     leader.Time      // Hold
	Why    *message.Problem // Dead
	Err    error            // Repeat: why no answer came
	Reason string           // BackOff: why the stream refuses, for the log; empty if it does not refuse
}

// Kind is the kind of a Step. The set is closed.
type Kind int

// The steps.
const (
	AsAny   Kind = iota // decide as about any message
	Hold                // wait until Step.At
	BackOff             // wait, longer each time
	Repeat              // repeat the unanswered request, as soon as there is a connection
	Examine             // read its own entry from a replica, if it is Fresh, or the last of its subject from the leader
	Claim               // store its firing
	Precede             // ask whether the rounds before are settled or, for a debounced set, when its run began
	Restart             // decide by its own entry, which has been read
	Deliver             // deliver: its firing is stored
	Remove              // remove its entry
	LetGo               // drop it: nothing is left to do
	Dead                // make it a dead letter
)

// Moment is the situation at a decision.
type Moment struct {
	Now     leader.Time
	Proven  bool // the leader's clock has certainly reached that time
	Crowded bool // many messages are in memory already
	Own     bool // this is the timers' own lane
	Last    bool // this is the last lane of the message before it is due
}

// Message is the part of a message that a decision needs.
type Message struct {
	Stored leader.Time
	When   leader.Time // its due time
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

// armedAt returns when the marker of a set is sent.
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

// wins reports whether the answer to a publish that expects a generation proves it stored.
func (a Answer) wins(generation uint64) bool {
	return a.outcome() == jsapi.Stored && a.Ack.Sequence > generation
}

// refusal reports whether the publish is certainly not stored.
func (a Answer) refusal() bool { return a.outcome().Final() }

// unclear reports whether the answer leaves open if a firing, or another entry, is stored.
func (a Answer) unclear() bool {
	return !a.refusal() || a.outcome() == jsapi.Conflict || a.outcome() == jsapi.Undecided
}

// Claimed notes the answer to the publish of Stream.Firing, and reports whether a firing is stored.
func (a *Alarm) Claimed(answer Answer) (won bool) {
	switch {
	case answer.wins(a.Generation) && a.ends == passes:
		a.missed(answer.Ack.Sequence)
	case answer.wins(a.Generation):
		a.Won(answer.Ack.Sequence)
		if a.ends == over && a.cleared { // the firing expected the generation, so no entry lies between them
			a.Fired = answer.Ack.Sequence
		}
		return true
	case answer.unclear():
		a.Stage = Doubt
	}
	return false
}

// AfterClaim decides after the timers' stream has answered a firing, or the answer is missing. An uncertain result is
// examined: see unclear. Size is the size of the body.
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
		// A client has set or cancelled the timer, or the outcome is recorded already, by an earlier try or by another alarm
		// of ours, which counts the left-out occurrences. The settled entries must be removed.
		a.What, a.Left = "", 0
	case answer.unclear():
		return Step{Kind: Repeat, Err: answer.Err}
	default:
		a.What = "" // there is no room for the outcome; the settled entries must be removed all the same
	}
	return Step{Kind: Remove}
}

// AfterRemoval decides after the entries of a settled timer were removed, or should have been. An entry that is on the
// subject now belongs to others.
//
// A pass of the sweep waits for the timers that it has found, and may not yet have found the round that is on its way.
// So entries that must stay for that round are left to a later pass.
func (a *Alarm) AfterRemoval(err error) Step {
	if err == nil || errors.Is(err, errUnsettled) && a.Swept() {
		return Step{Kind: LetGo}
	}
	return Step{Kind: Repeat, Err: err}
}
