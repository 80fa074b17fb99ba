package role

import (
	"time"

	"github.com/nats-io/nats.go"

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
	// If another message of this process has claimed a timer, the worker examines the timer again after claimRetry.
	claimRetry = time.Second
)

// Step is the next step for a timer.
type Step struct {
	Kind    Kind
	At      leader.Time      // of Hold: the time of the next decision; of Continue: the new due time, zero if it stays
	Problem *message.Problem // of Dead: the reason
	Err     error            // of Repeat: the reason for the repetition, if it is an error
	Reason  string           // of BackOff: the stream's reason for a refusal, for the log; empty without a refusal
	Content *Content         // of Restart and Deliver: the content of the message; nil if it stays
	Missed  int              // number of missed occurrences to count
	Paused  bool             // the series was paused after dead letters
}

// Content is the content of a timer's message.
type Content struct {
	Request message.Request
	Problem *message.Problem // nil if the message can be delivered
	Body    []byte
}

// Kind is the kind of a Step.
type Kind int

// The steps.
const (
	Default  Kind = iota // the worker decides as about any other message
	Hold                 // wait until Step.At
	BackOff              // wait for a backoff, which grows with each try
	Repeat               // repeat the request after a while: it failed, or its effect is unknown
	Copy                 // read the entry from a replica: see Stream.ReadCopies
	Read                 // send the request that Alarm.Request returns
	Claim                // store the firing: see Alarm.Claim
	Restart              // decide again: the timer's own entry was read
	Continue             // decide again: a request has succeeded
	Deliver              // deliver the message: its firing is stored
	Remove               // remove the timer's entries
	Drop                 // drop the message: the timer needs no further step
	Dead                 // store a dead letter
)

// Situation is the situation at a decision.
type Situation struct {
	Now        leader.Time
	Local      time.Time // the same moment by this host's clock
	Proven     bool      // the leader's clock has certainly reached Now
	Crowded    bool      // memory is short
	TimersLane bool      // the message was read from the timers' stream
	LastLane   bool      // the message waits in this lane until it is due

	// The following fields describe the message.
	Stored  leader.Time // when the lane's stream stored it
	Due     leader.Time
	Invalid bool // it cannot be delivered
	Loaded  bool // memory for the body was reserved, in order to read the timer
}

// Next returns the next step of a timer that was just read, or whose time on the worker's timing wheel has come.
func (a *Alarm) Next(s Situation) Step {
	switch {
	case a.state >= arrived && a.removal.entry != 0:
		return Step{Kind: Remove}
	case a.readsRun() && !s.Invalid:
		return Step{Kind: Read}
	case a.state == replaced:
		return a.withdraw()
	case a.state >= arrived:
		return Step{Kind: Drop}
	case a.state == fired, s.Invalid:
		return Step{}
	}
	due, readAt := !s.Now.Before(s.Due), s.Due.Add(-readAhead).Truncate(readWindow)
	claims := due && s.Proven && a.state == pending
	readsEarly := !due && s.Loaded && a.state == pending && a.earlier == earlierAwaited
	if a.awaitsEarlierRounds() && (claims || readsEarly) {
		a.lane.recall(a)
		readsEarly = a.earlier == earlierAwaited && readsEarly
	}
	switch armedAt := a.armedAt(s); {
	case !due && a.awaitsRun(): // the due time may become earlier
		return Step{Kind: Hold, At: s.Due}
	case a.state == copyable && s.LastLane && s.Now.Before(readAt):
		return Step{Kind: Hold, At: readAt}
	case a.state == copyable && s.LastLane:
		return Step{Kind: Copy}
	case readsEarly, claims && (a.awaitsEarlierRounds() || a.needsRun(s.Due)):
		return Step{Kind: Read}
	case claims:
		return Step{Kind: Claim}
	case due && s.Proven:
		return Step{Kind: Read}
	case s.TimersLane && !s.Crowded && !s.LastLane && s.Now.Before(armedAt):
		return Step{Kind: Hold, At: armedAt}
	}
	return Step{}
}

// armedAt returns the time at which the marker of a set is sent, unless memory is short.
func (a *Alarm) armedAt(s Situation) leader.Time {
	wait := armWait
	if a.series != nil {
		wait = roundArmWait
	}
	return s.Stored.Add(min(wait, s.Due.Sub(s.Stored)/2))
}

// Claim returns the entry to store when a timer is due: see firingEntry. If there is none, it returns the next step:
// another alarm of this process has claimed the timer, or the last round of a series was missed.
func (a *Alarm) Claim(r message.Request, body []byte, now leader.Time) (*nats.Msg, Step) {
	if !a.lane.take(a) {
		return nil, a.waitForOther(now)
	}
	if firing := a.firingEntry(r, body, now.Stamp()); firing != nil {
		return firing, Step{}
	}
	if a.hasOutcome() {
		return nil, Step{Kind: Remove} // the occurrences are counted when the outcome is stored
	}
	return nil, a.countMissed(Step{Kind: Remove})
}

// waitForOther returns the step of a timer whose firing another alarm of this process has claimed.
func (a *Alarm) waitForOther(now leader.Time) Step {
	a.state = doubt
	return Step{Kind: Hold, At: now.Add(claimRetry)}
}

// countMissed adds to a step the missed occurrences that are not counted yet. If an entry is to record that they are
// skipped, they are counted when the entry is stored, so that no instance counts them twice.
func (a *Alarm) countMissed(s Step) Step {
	s.Missed, a.skipped = a.skipped, 0
	return s
}

// Outcome returns the entry that must record the timer's outcome before the other entries are removed; nil for none.
func (a *Alarm) Outcome(r message.Request) *nats.Msg {
	if !a.hasOutcome() {
		return nil
	}
	return a.lane.sealed(a.Subject, a.pending(r).OverHeader(a.Generation, a.removal.entry, a.removal.outcome), nil)
}

func (a *Alarm) hasOutcome() bool {
	return a.lane.history(a.Subject) > 0 && a.removal.reach != onlyThis && a.removal.outcome != ""
}
