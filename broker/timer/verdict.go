package timer

import (
	"time"

	"delaybroker/broker/timer/entry"
)

// Verb is the operation of a request.
type Verb string

const (
	Get    Verb = "get"
	Set    Verb = "set"
	Cancel Verb = "cancel"
	Move   Verb = "move"
	Fire   Verb = "fire" // the timer is due immediately; a series is delivered once more, and does not change

	// The following verbs are for series only.
	Pause  Verb = "pause"  // no round fires until the series is resumed
	Resume Verb = "resume" // the series continues by its table, and by its policy for missed rounds
	Retime Verb = "retime" // the series continues by another table, with the same body
	Fail   Verb = "fail"   // of brokers: Call.Round became a dead letter; Delay-Pause-After in a row pause the series
)

// Outcome is the outcome of a request.
type Outcome string

const (
	Pending   Outcome = "pending"   // the timer is set
	Cancelled Outcome = "cancelled" // Verdict.Generation is never delivered; if it is zero, see Verdict.Why
	Paused    Outcome = "paused"    // no round fires until the series is resumed
	Moved     Outcome = "moved"     // the timer has another time or another table, and a new generation
	Fired     Outcome = "fired"     // for the verb Fire, the success; for other verbs, the timer has fired already
	TooLate   Outcome = "too_late"  // the timer fired before the request could change it
	NotFound  Outcome = "not_found" // no such timer or generation: never set, cancelled, or its entries are removed
	Conflict  Outcome = "conflict"  // the last entry is not the one that the request requires; nothing was changed
	Unknown   Outcome = "unknown"   // the state, or the effect of the request, is unknown: repeat it with the same ID
)

// Call is a request about one timer.
type Call struct {
	Verb        Verb
	Generation  uint64 // the generation that the request is about; zero for any
	Series      uint64 // the series to change, whichever round is pending; zero for any; excludes Generation
	Round       int    // for Fail: the number of the round
	Conditional bool   // for Set: set only if Generation is the last entry; for Generation zero, if no entry exists
	ID          string // the token of this request; a repetition has the same token: see entry.Pending
}

// Verdict is the answer to a request.
type Verdict struct {
	Outcome    Outcome
	Generation uint64        // the generation that the outcome is about; zero if there is none
	Due        time.Time     // zero if it is unknown
	Delivery   entry.Outcome // the outcome of a fired timer; empty until a broker has recorded it
	Why        string        // an explanation for people; empty if the outcome needs none
}

// Next is the next step for a Call.
type Next int

const (
	Reply     Next = iota // return the answer
	Publish               // publish, and expect the last entry that was read
	ReadAgain             // read again: a later state may decide; at the request's timeout, return the answer
)

// Doubt records the publishes of a request that the stream has not answered. The stream may have stored them, or may
// store them later.
type Doubt struct {
	Unanswered bool   // at least one publish is unanswered
	Generation uint64 // all unanswered publishes expected this generation; zero if they expected none, or different ones
}

// Add records a publish that expected a generation, and that the stream has not answered.
func (d *Doubt) Add(generation uint64) {
	if d.Unanswered && d.Generation != generation {
		generation = 0
	}
	d.Unanswered, d.Generation = true, generation
}

// Decide returns the next step of a request, given the last entry of the timer's subject.
//
// A publish that expects generation g can be stored only while g is the last entry. So another request's cancel of g,
// or a firing of g, proves that this publish was not stored, and never will be. Any other entry proves nothing: that
// entry may have been stored after our publish.
//
// If the stream ends below the generation, the worker waits for a proof (State.EndConfirmed). Decide does not wait,
// because any client may name such a generation.
func Decide(a Call, f State, doubt Doubt) (Next, Verdict) {
	unknown := Verdict{Outcome: Unknown, Generation: a.Generation}
	e := f.Entry
	switch {
	case f.EndsBelow(a.Generation):
		unknown.Why = "the stream ends before that generation, according to its leader"
	case f.NoEntry || f.Sequence < a.Generation: // older: the generation is removed, lost, or of another timer
		return a.decideNone(f, doubt)
	case e.Kind == entry.Set, e.Kind == entry.Paused:
		return a.decidePending(f, doubt)
	case e.Kind == entry.Cancel:
		return a.decideCancelled(e, f.Sequence, doubt)
	case e.Kind == entry.Fired, e.Kind == entry.Over:
		return a.decideFired(e, doubt)
	default:
		unknown.Why = "the last entry is sealed with a secret that this broker does not know yet"
	}
	if doubt.Unanswered { // another read may show the result of the publish
		return ReadAgain, unknown
	}
	return Reply, unknown // the request has changed nothing: the client may repeat it
}

func (a Call) decideNone(f State, doubt Doubt) (Next, Verdict) {
	switch {
	case a.Verb == Set && doubt.Unanswered:
		return ReadAgain,
			Verdict{Outcome: Unknown, Why: "there is no entry: the request is not stored yet, or the timer has ended"}
	case a.Verb == Set && (!a.Conditional || a.Generation == 0) && f.NoEntry:
		return Publish, Verdict{}
	case doubt.Unanswered:
		return Reply, Verdict{Outcome: Unknown, Generation: a.Generation,
			Why: "the timer has ended; unknown whether by this request"}
	}
	return Reply, Verdict{Outcome: NotFound, Generation: a.Generation}
}

// wrote reports whether this request has written the entry e, with the given generation.
func (a Call) wrote(e entry.Entry, generation uint64) bool {
	return a.ID != "" && e.Token == a.ID && generation > a.Generation
}

// Success returns the answer to a request that has set a generation.
func (a Call) Success(generation uint64, due time.Time) Verdict {
	outcomes := map[Verb]Outcome{
		Set: Pending, Move: Moved, Fire: Fired, Pause: Paused, Resume: Pending, Retime: Moved, Fail: Pending,
	}
	return Verdict{Outcome: outcomes[a.Verb], Generation: generation, Due: due}
}

func (a Call) decidePending(f State, doubt Doubt) (Next, Verdict) {
	e, g, outcome := f.Entry, f.Sequence, Pending
	if e.Kind == entry.Paused {
		outcome = Paused
	}
	switch {
	case a.Verb == Get:
		answer := Verdict{Outcome: outcome, Generation: g, Due: e.Request.Due}
		if e.Problem != nil {
			answer.Why = e.Problem.Sentence
		} else if outcome == Paused {
			answer.Why = e.LastError // empty after a request to pause
		}
		return Reply, answer
	case a.Verb != Cancel && a.Verb != Fail && a.wrote(e, g): // a Fail may have paused the series: see below
		return Reply, a.Success(g, e.Request.Due)
	case a.Series > 0 && a.Series != e.Origin().Series:
		return a.conflict(Verdict{Generation: g, Due: e.Request.Due, Why: "the last entry is of another series"}, doubt)
	case a.Verb != Set && a.Generation > 0 && e.Fires(a.Generation):
		return Reply, Verdict{Outcome: TooLate, Generation: a.Generation, Due: e.ReplacedRequest.Due,
			Why: "the last entry is the next round"}
	case a.Verb == Pause && outcome == Paused && (a.Generation == 0 || a.Generation == g),
		a.Verb == Fail && (outcome == Paused || e.Origin().FailedRound >= a.Round):
		return Reply, Verdict{Outcome: outcome, Generation: g}
	case a.Verb == Resume && outcome == Pending && e.Series != nil && (a.Generation == 0 || a.Generation == g):
		return Reply, Verdict{Outcome: Pending, Generation: g, Due: e.Request.Due} // not paused: the due time does not change
	case a.Verb == Set && !a.Conditional && !doubt.Unanswered,
		a.Verb != Set && a.Generation == 0,
		a.Generation == g && g > 0:
		return Publish, Verdict{}
	}
	return a.conflict(Verdict{Generation: g, Due: e.Request.Due, Why: "another request has set the timer"}, doubt)
}

// conflict returns the answer to a request that requires another last entry. Other describes the last entry, and lacks
// the outcome.
func (a Call) conflict(other Verdict, doubt Doubt) (Next, Verdict) {
	other.Outcome = Conflict
	if doubt.Unanswered {
		other.Outcome = Unknown
		other.Why += "; unknown whether this request was stored before it"
	}
	return Reply, other
}

func (a Call) decideCancelled(e entry.Entry, sequence uint64, doubt Doubt) (Next, Verdict) {
	answer := Verdict{Outcome: Cancelled, Generation: e.Cancelled}
	if e.Cancelled == 0 {
		answer.Why = "cancelled by a client that expected no generation: a timer that had fired before is still delivered"
	}
	switch {
	case a.Verb == Get, a.Verb == Cancel && e.Cancelled > 0 &&
		(a.wrote(e, sequence) || a.Generation == 0 || a.Generation == e.Cancelled):
		return Reply, answer
	case a.Verb == Cancel && a.Generation == 0:
		answer.Outcome = Unknown
		return Reply, answer
	case a.Verb == Set && !a.Conditional && !doubt.Unanswered:
		return Publish, Verdict{}
	case a.Generation > 0 && a.Generation == e.Cancelled:
		doubt = Doubt{} // the cancel replaced the generation, so no publish of ours did
	}
	if answer.Why == "" {
		answer.Why = "the timer is cancelled"
	}
	if a.Generation == 0 && !doubt.Unanswered && a.Verb != Set {
		return Reply, Verdict{Outcome: NotFound, Generation: e.Cancelled, Why: answer.Why}
	}
	return a.conflict(answer, doubt)
}

func (a Call) decideFired(e entry.Entry, doubt Doubt) (Next, Verdict) {
	answer := Verdict{Generation: e.Generation, Due: e.Request.Due, Delivery: e.Outcome}
	switch {
	case a.Verb == Get:
		answer.Outcome = Fired
		return Reply, answer
	case a.Verb != Cancel && a.wrote(e, e.Generation):
		done := a.Success(e.Generation, e.Request.Due)
		done.Delivery = e.Outcome
		if a.Verb == Set {
			done.Outcome = Fired
		}
		return Reply, done
	case a.Verb == Set && !a.Conditional && !doubt.Unanswered:
		return Publish, Verdict{}
	case a.Verb != Set && (a.Generation == e.Generation ||
		a.Generation == 0 && (!doubt.Unanswered || doubt.Generation == e.Generation)):
		answer.Outcome = TooLate
		return Reply, answer
	case a.Verb == Set && a.Conditional && a.Generation == e.Generation:
		doubt = Doubt{} // the firing replaced the generation, so no publish of ours did
	}
	answer.Why = "another generation has fired"
	return a.conflict(answer, doubt)
}
