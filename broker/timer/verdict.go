package timer

import (
	"time"

	"delaybroker/broker/timer/entry"
)

// Verb is the operation that a request asks for.
type Verb string

// The kinds of requests.
const (
	Get    Verb = "get"
	Set    Verb = "set"
	Cancel Verb = "cancel"
	Move   Verb = "move"
	Fire   Verb = "fire" // of a series: one extra delivery, which leaves the series as it is

	// Of a series.
	Pause  Verb = "pause"  // no round is due until it is resumed
	Resume Verb = "resume" // by its table, and by its policy for missed rounds
	Retime Verb = "retime" // another table, with the same body
)

// Outcome is the outcome of a request. All but Unknown, and Pending as an answer to Get, are final.
type Outcome string

// The outcomes.
const (
	Pending   Outcome = "pending"   // the timer is set
	Cancelled Outcome = "cancelled" // the generation will never be delivered
	Paused    Outcome = "paused"    // no round is due until it is resumed
	Moved     Outcome = "moved"     // the timer has another time or another table, and a new generation
	Fired     Outcome = "fired"     // due at once, with a new generation; or, for Get, its message is on its way or over
	TooLate   Outcome = "too_late"  // the timer has fired before
	NotFound  Outcome = "not_found" // the timer was never set, or is over for longer than the history
	Conflict  Outcome = "conflict"  // another generation is the last entry; nothing was done
	Unknown   Outcome = "unknown"   // the change may or may not have been made: ask again, with the same request ID
)

// Request is a verb about one timer.
type Request struct {
	Verb        Verb
	Generation  uint64 // of the timer; zero for any
	Series      uint64 // of the timer, in any round; zero for any. Not with Generation
	Conditional bool   // Set: only in place of Generation, where zero is no entry
	ID          string // of this request: the entry that it writes carries it, and no other entry does
}

// Answer is the answer to a request.
type Answer struct {
	Outcome    Outcome
	Generation uint64    // the generation that was cancelled, that has fired or that is pending
	Due        time.Time // zero if it is unknown
	Became     entry.Outcome
	Why        string // an explanation for people, if the outcome needs one
}

// Next is the next step for a Request.
type Next int

// The next steps.
const (
	Say  Next = iota // return the answer
	Ask              // publish, expecting the entry that was read
	Look             // read again, since a publish of ours may still be stored; when the time is over, return the answer
)

// Doubt records the publishes of a request that were not answered: they may be stored, now or later.
type Doubt struct {
	Any bool
	Of  uint64 // the generation that they expected; zero for none, or for several
}

// Note notes an unanswered publish that expected a generation.
func (d *Doubt) Note(generation uint64) {
	if d.Any && d.Of != generation {
		generation = 0
	}
	d.Any, d.Of = true, generation
}

// Decide decides the next step by the last entry of the timer's subject.
//
// A publish that expects generation g can be stored only while g is the last entry. So a firing or a cancel in place of
// g proves that the publish never will be stored. Any other entry does not: it may have come after ours.
//
// Decide never waits for an event that may not come, such as a generation beyond the end of the stream, which any
// client may name.
func Decide(a Request, f State, doubt Doubt) (Next, Answer) {
	if a.Generation > f.LastSeq && (f.None || f.Sequence < a.Generation) {
		return undecided(doubt), Answer{Outcome: Unknown, Generation: a.Generation,
			Why: "the stream ends before that generation, as far as its leader says"}
	}
	if f.None || f.Sequence < a.Generation { // if an older entry is the last again, the stream was restored
		return a.none(f, doubt)
	}
	e := f.Entry
	switch e.Kind {
	case entry.Set, entry.Paused:
		return a.pending(f, doubt)
	case entry.Cancel:
		return a.cancelled(e, f.Sequence, doubt)
	case entry.Fired:
		return a.fired(e, "", doubt)
	case entry.Over:
		return a.fired(e, entry.Outcome(e.By), doubt)
	}
	return undecided(doubt), Answer{Outcome: Unknown, Generation: a.Generation,
		Why: "a broker wrote the last entry with a secret that is not known here yet"}
}

// undecided returns the next step for an entry that proves nothing. If a publish is in doubt, another read may show its
// result. Otherwise nothing was done, and the client may ask again.
func undecided(doubt Doubt) Next {
	if doubt.Any {
		return Look
	}
	return Say
}

// none decides when the subject has no entry.
func (a Request) none(f State, doubt Doubt) (Next, Answer) {
	switch {
	case a.Verb == Set && doubt.Any:
		return Look, Answer{Outcome: Unknown, Why: "there is no entry: the request is not stored yet, or the timer is over"}
	case a.Verb == Set && (!a.Conditional || a.Generation == 0) && f.None:
		return Ask, Answer{}
	case doubt.Any:
		return Say, Answer{Outcome: Unknown, Generation: a.Generation,
			Why: "the timer is over; unknown whether by this request"}
	}
	return Say, Answer{Outcome: NotFound, Generation: a.Generation}
}

// ours reports whether this request has written the entry of a generation.
func (a Request) ours(e entry.Entry, generation uint64) bool {
	return a.ID != "" && e.Word == a.ID && generation > a.Generation
}

// done returns the answer if this request has set a generation.
func (a Request) done(generation uint64, due time.Time) Answer {
	what := map[Verb]Outcome{
		Set: Pending, Move: Moved, Fire: Fired, Pause: Paused, Resume: Pending, Retime: Moved,
	}[a.Verb]
	return Answer{Outcome: what, Generation: generation, Due: due}
}

// pending decides when a timer is set, or a series is paused.
func (a Request) pending(f State, doubt Doubt) (Next, Answer) {
	e, g := f.Entry, f.Sequence
	what := Pending
	if e.Kind == entry.Paused {
		what = Paused
	}
	switch {
	case a.Verb == Get:
		answer := Answer{Outcome: what, Generation: g, Due: e.Request.Due}
		if e.Problem != nil {
			answer.Why = e.Problem.Sentence
		}
		return Say, answer
	case a.Verb != Cancel && a.ours(e, g):
		return Say, a.done(g, e.Request.Due)
	case a.Series > 0 && a.Series != e.Origin().Series:
		return a.contested(Answer{Generation: g, Due: e.Request.Due, Why: "another series stands there"}, doubt)
	case a.Verb != Set && a.Generation > 0 && e.Fires(a.Generation):
		return Say, Answer{Outcome: TooLate, Generation: a.Generation, Due: e.Before.Due, Why: "the next round stands there"}
	case a.Verb == Pause && what == Paused && (a.Generation == 0 || a.Generation == g):
		return Say, Answer{Outcome: Paused, Generation: g}
	case a.Verb == Resume && what == Pending && e.Recurs != nil && (a.Generation == 0 || a.Generation == g):
		return Say, Answer{Outcome: Pending, Generation: g, Due: e.Request.Due} // its round stays where it was moved to
	case a.Verb == Set && !a.Conditional && !doubt.Any,
		a.Verb != Set && a.Generation == 0,
		a.Generation == g && g > 0:
		return Ask, Answer{}
	}
	return a.contested(Answer{Generation: g, Due: e.Request.Due, Why: "another request has set it"}, doubt)
}

// contested returns the answer when the last entry is not the one that the request named.
func (a Request) contested(other Answer, doubt Doubt) (Next, Answer) {
	other.Outcome = Conflict
	if doubt.Any {
		other.Outcome = Unknown
		other.Why += "; unknown whether this request was stored before it"
	}
	return Say, other
}

// cancelled decides when the last entry is a cancel, at a sequence.
func (a Request) cancelled(e entry.Entry, sequence uint64, doubt Doubt) (Next, Answer) {
	answer := Answer{Outcome: Cancelled, Generation: e.Cancelled}
	if e.Cancelled == 0 {
		answer.Why = "cancelled by a client that expected no generation: what had fired by then arrives all the same"
	}
	mine := a.ID != "" && e.Word == a.ID && sequence > a.Generation
	switch {
	case a.Verb == Get:
		return Say, answer
	case a.Verb == Cancel && e.Cancelled > 0 && (mine || a.Generation == 0 || a.Generation == e.Cancelled):
		return Say, answer
	case a.Verb == Cancel && a.Generation == 0:
		answer.Outcome = Unknown
		return Say, answer
	case a.Verb == Set && !a.Conditional && !doubt.Any:
		return Ask, Answer{}
	case a.Generation > 0 && a.Generation == e.Cancelled:
		doubt = Doubt{} // the cancel replaced the generation, so no publish of ours did
	}
	if answer.Why == "" {
		answer.Why = "it is cancelled"
	}
	if a.Generation == 0 && !doubt.Any && a.Verb != Set {
		return Say, Answer{Outcome: NotFound, Generation: e.Cancelled, Why: answer.Why}
	}
	return a.contested(answer, doubt)
}

// fired decides when a generation has fired. Became is empty while its message is on its way.
func (a Request) fired(e entry.Entry, became entry.Outcome, doubt Doubt) (Next, Answer) {
	answer := Answer{Generation: e.Generation, Due: e.Request.Due, Became: became}
	switch {
	case a.Verb == Get:
		answer.Outcome = Fired
		return Say, answer
	case a.Verb != Cancel && a.ours(e, e.Generation):
		done := a.done(e.Generation, e.Request.Due)
		done.Became = became
		if a.Verb == Set {
			done.Outcome = Fired
		}
		return Say, done
	case a.Verb == Set && !a.Conditional && !doubt.Any:
		return Ask, Answer{}
	case a.Verb != Set && (a.Generation == e.Generation ||
		a.Generation == 0 && (!doubt.Any || doubt.Of == e.Generation)):
		answer.Outcome = TooLate
		return Say, answer
	case a.Verb == Set && a.Conditional && a.Generation == e.Generation:
		doubt = Doubt{} // the firing replaced the generation, so no publish of ours did
	}
	answer.Why = "another generation has fired"
	return a.contested(answer, doubt)
}
