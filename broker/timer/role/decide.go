package role

import (
	"errors"
	"time"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/leader"
	"delaybroker/broker/message"
)

const (
	// armWait is the maximum time for which a set waits in memory before its marker is sent. A set waits for at most half
	// of its delay. A set that is replaced while it waits costs no marker. For a round, the maximum is roundArmWait,
	// because rounds are rarely replaced.
	armWait      = 10 * time.Second
	roundArmWait = time.Second
	// readAhead is the time before the due time at which the entry of a marker's timer is read. It leaves time for a
	// request to a replica, and then one to the leader. The read begins at a multiple of readWindow, so that one request
	// reads many timers.
	readAhead  = 2500 * time.Millisecond
	readWindow = 500 * time.Millisecond
	// If another message of this process has claimed a timer, the worker examines the timer again after ClaimRetry.
	ClaimRetry = time.Second
)

// Step is the next step for a timer.
type Step struct {
	Kind    Kind
	At      leader.Time      // of Hold: the time of the next decision
	Problem *message.Problem // of Dead: the reason
	Err     error            // of Repeat: the reason for the repetition, if it is an error
	Reason  string           // of BackOff: the stream's reason for a refusal, for the log; empty without a refusal
}

// Kind is the kind of a Step.
type Kind int

// The steps.
const (
	Default            Kind = iota // the worker decides as about any other message
	Hold                           // wait until Step.At
	BackOff                        // wait for a backoff, which grows with each try
	Repeat                         // repeat the request after a while: it failed, or its effect is unknown
	Examine                        // read the entry from a replica if Alarm.Fresh; otherwise the state from the leader
	Claim                          // store the firing
	ReadEarlierEntries             // read whether the earlier rounds are settled; for a debounced set, when its run began
	Restart                        // decide again: the timer's own entry was read
	Deliver                        // deliver the message: its firing is stored
	Remove                         // remove the timer's entries
	Drop                           // drop the message: the timer needs no further step
	Dead                           // store a dead letter
)

// Moment is the situation at a decision.
type Moment struct {
	Now        leader.Time
	Proven     bool // the leader's clock has certainly reached Now
	Crowded    bool // memory is short
	TimersLane bool // the message was read from the timers' stream
	LastLane   bool // the message waits in this lane until it is due
}

// Message has the fields of a message that a decision needs.
type Message struct {
	Stored  leader.Time // when the lane's stream stored the message
	Due     leader.Time
	Invalid bool // the message cannot be delivered
}

// Next returns the next step of a timer that was just read, or whose time on the worker's timing wheel has come.
func (a *Alarm) Next(m Moment, msg Message) Step {
	switch {
	case a.Stage == Settled && a.Entry != 0:
		return Step{Kind: Remove}
	case a.Stage == Settled, a.Superseded && a.Stage == Pending:
		return Step{Kind: Drop}
	case a.Stage == Fired, msg.Invalid:
		return Step{}
	}
	due, readAt := !m.Now.Before(msg.Due), msg.Due.Add(-readAhead).Truncate(readWindow)
	switch armedAt := a.armedAt(msg); {
	case a.Fresh && m.LastLane && m.Now.Before(readAt):
		return Step{Kind: Hold, At: readAt}
	case a.Fresh && m.LastLane:
		return Step{Kind: Examine}
	case !due && a.Stage == Pending && a.AwaitsEarlierRounds && a.Loaded && !a.EarlierRoundsRead:
		return Step{Kind: ReadEarlierEntries}
	case due && m.Proven && a.Stage == Pending && (a.AwaitsEarlierRounds || a.needsRun(msg.Due)):
		return Step{Kind: ReadEarlierEntries}
	case due && m.Proven && a.Stage == Pending:
		return Step{Kind: Claim}
	case due && m.Proven:
		return Step{Kind: Examine}
	case m.TimersLane && !m.Crowded && !m.LastLane && m.Now.Before(armedAt):
		return Step{Kind: Hold, At: armedAt}
	}
	return Step{}
}

// armedAt returns the time at which the marker of a set is sent, unless memory is short.
func (a *Alarm) armedAt(msg Message) leader.Time {
	wait := armWait
	if a.series != nil {
		wait = roundArmWait
	}
	return msg.Stored.Add(min(wait, msg.Due.Sub(msg.Stored)/2))
}

// Answer is the answer of the timers' stream to a publish.
type Answer jsapi.Reply

func (a Answer) outcome() jsapi.Outcome { return jsapi.Reply(a).Outcome() }

// wins reports whether the answer proves that the stream has stored our publish, which expected a generation to be the
// last entry.
func (a Answer) wins(generation uint64) bool {
	return a.outcome() == jsapi.Stored && a.Ack.Sequence > generation
}

// unclear reports whether an entry may have been stored, by this publish or by another one.
func (a Answer) unclear() bool {
	return !a.outcome().NotStored() || a.outcome() == jsapi.Conflict || a.outcome() == jsapi.Undecided
}

// Claimed records the answer to the publish of Stream.Firing, and reports whether our firing is certainly stored.
func (a *Alarm) Claimed(answer Answer) (won bool) {
	switch {
	case answer.wins(a.Generation) && a.firing == missedRound:
		a.missed(answer.Ack.Sequence)
	case answer.wins(a.Generation):
		a.FiringStored(answer.Ack.Sequence)
		if a.firing == lastFiring && a.cleared { // the firing expected the generation, so no entry lies between them
			a.Firing = answer.Ack.Sequence
		}
		return true
	case answer.unclear():
		a.Stage = Doubt
	}
	return false
}

// AfterClaim returns the next step after the stream has answered the publish of a firing, or has not answered in time.
// The caller must have called Claimed. Size is the size of the body, in bytes.
func (s *Stream) AfterClaim(a *Alarm, size int, answer Answer) Step {
	switch {
	case a.Stage == Settled:
		return Step{Kind: Remove}
	case answer.wins(a.Generation):
		return Step{Kind: Deliver}
	case answer.Err != nil:
		return Step{Kind: Repeat, Err: answer.Err}
	case answer.outcome() == jsapi.TooLarge:
		return Step{Kind: Dead, Problem: s.TooLargeToFire(a, size)}
	case answer.outcome() == jsapi.Conflict:
		return Step{Kind: Examine}
	}
	next := Step{Kind: BackOff}
	if answer.outcome().NotStored() && answer.outcome() != jsapi.Undecided {
		next.Reason = answer.Ack.Description
	}
	return next
}

// AfterOutcome records the answer to the publish of an outcome, and returns the next step.
func (a *Alarm) AfterOutcome(answer Answer) Step {
	switch {
	case answer.wins(a.Entry):
		a.Entry, a.Keep, a.Outcome = answer.Ack.Sequence, true, ""
	case answer.outcome() == jsapi.Conflict:
		// The outcome is already recorded, or a client has set or cancelled the timer. If another alarm has recorded the
		// outcome, that alarm counts the missed occurrences. If a client has changed the timer, nobody counts them: the
		// conflict does not show which entry came first.
		a.Outcome, a.Skipped = "", 0
	case answer.unclear():
		return Step{Kind: Repeat, Err: answer.Err}
	default:
		a.Outcome = "" // the stream refuses the outcome; the settled entries are removed without an outcome
	}
	return Step{Kind: Remove}
}

// AfterRemoval returns the next step after a try to remove the entries of a settled timer.
//
// A sweep pass waits for the timers that it has found. If such a timer waited for an earlier round that only a later
// pass finds, the pass would never end. So the timer is dropped, and a later pass removes the remaining entries.
func (a *Alarm) AfterRemoval(err error) Step {
	if err == nil || errors.Is(err, errUnsettled) && a.Swept() {
		return Step{Kind: Drop}
	}
	return Step{Kind: Repeat, Err: err}
}
