// Package linear judges the answers and the deliveries of one named timer. There must be an order of all operations in
// which every answer is correct.
//
// The entries of a timer's subject are a register with compare-and-set. The generation of a timer is the sequence of
// the entry that set it. An acknowledged set or cancel is in the order. A refused set or cancel found another state
// than the expected one. A set or cancel without an answer may be in the order, at any time after it was sent. A
// delivery ends the generation. Each operation takes effect between its call and its return. If a timer is pending at
// the end, it was lost.
//
// A series, which is a timer that recurs, is such a register, too. The delivery of a round writes the next round, under
// a generation that no client learns, until no round is left. So if a round is not delivered, the series is pending at
// the end, and was lost. A delivery is wrong if it repeats or skips a round, or comes during a pause or after a cancel.
// A move, a resumption and a change of the timetable (Retime) write the pending round again. A series that is paused at
// the end was not lost.
package linear

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

type Kind string

// The kinds.
const (
	Set    Kind = "set" // a set; or, of a timer that fires once, a move or a request to fire now
	Cancel Kind = "cancel"
	Fire   Kind = "fire" // a delivery

	// Operations on a series, which keep the number of rounds and the pending round.
	Move   Kind = "move"   // also a resumption
	Retime Kind = "retime" // a change of the timetable; a paused series stays paused
	Pause  Kind = "pause"

	theEnd Kind = "end"
)

// Values of Op.Expects other than a generation.
const (
	AnyState   = -1 // any state
	AnyPending = -2 // any pending generation
)

type Result string

// The results.
const (
	Done    Result = "done"
	Refused Result = "refused" // the subject had another last entry, or none
	Unknown Result = "unknown" // no answer, or no final answer
)

// Op is one request of a client about one timer, or a delivery.
type Op struct {
	Kind    Kind
	Expects int64 // a generation, 0 for no entry, AnyState or AnyPending
	Result  Result
	Rounds  int    // for a Set: number of rounds; zero if it fires once
	Round   int    // for a delivery: number of the round, from 1; zero if it fires once
	Series  uint64 // for the delivery of a round: the sequence of the set of its series
	// Sequence is the sequence of the entry or, for a delivery, its generation. It is zero if the client did not learn it.
	// A cancel that is done without a sequence was a request to a broker. The broker answers "cancelled" for a generation
	// that any client has cancelled.
	Sequence uint64
	Call     time.Time
	Return   time.Time // ignored if the result is unknown
}

// Explain reports whether there is an order of the operations in which all answers are correct. Package porcupine
// searches for the order.
func Explain(ops []Op) bool {
	told := make(map[uint64]bool)
	var end int64
	history := make([]porcupine.Operation, 0, len(ops)+1)
	for _, o := range ops {
		if o.Kind != Fire && o.Result == Done {
			told[o.Sequence] = true
		}
		step := porcupine.Operation{Input: o, Call: o.Call.UnixNano(), Return: math.MaxInt64}
		end = max(end, step.Call)
		if o.Result != Unknown {
			step.Return = o.Return.UnixNano()
			end = max(end, step.Return)
		}
		history = append(history, step)
	}
	// An operation with an unknown result may come after the end in the order. Then it had no effect.
	history = append(history, porcupine.Operation{Input: Op{Kind: theEnd}, Call: end + 1, Return: end + 1})
	return porcupine.CheckOperations(porcupine.Model{
		Init: func() any { return state{} },
		Step: func(was, op, _ any) (bool, any) {
			is, ok := was.(state).apply(op.(Op), told)
			return ok, is
		},
	}, history)
}

// repeats reports whether the answer "done" to an op is correct because an earlier op had the same effect.
func (o Op) repeats(was state) bool {
	switch {
	case o.Result != Done:
		return false
	case o.Kind == Pause:
		return was.paused && !was.unlearned && o.Sequence == was.last
	case o.Kind == Move: // a resumption of a series that is not paused; a move would have a new sequence
		return was.pending && !was.paused && !was.unlearned && o.Sequence == was.last
	case o.Kind != Cancel || o.Sequence != 0:
		return false
	}
	return o.Expects == AnyPending && was.lastCancel || o.Expects > 0 && was.cancelled.has(uint64(o.Expects))
}

// state is the state of the last entry of the subject. The broker may remove the entries of a fired or cancelled timer
// at any time, so state does not record whether the subject has an entry.
type state struct {
	last      uint64 // the last sequence that a client learned, or that was delivered; zero before the first
	everSet   bool   // the subject has had an entry
	pending   bool
	unlearned bool // pending, with a generation that no client learned

	cancelled  generations // cancelled generations, except those that no client learned
	lastCancel bool        // the last entry is a cancel
	over       bool        // the operation theEnd has been applied

	series
}

// apply returns the state after an op, or false if the op cannot have this answer in this state. The parameter told has
// the generations that clients learned.
func (was state) apply(o Op, told map[uint64]bool) (state, bool) {
	switch {
	case was.over:
		return was, o.Result == Unknown
	case o.Kind == theEnd:
		is := was
		is.over = true
		return is, !was.pending || was.paused
	case o.Kind == Fire:
		fits := was.last == o.Sequence && !was.unlearned || was.unlearned && o.Sequence > was.last && !told[o.Sequence]
		is := state{last: o.Sequence, everSet: true, cancelled: was.cancelled}
		if is.series = was.fired(o); is.left() {
			is.pending, is.unlearned = true, true // the next round, whose generation no client learned
		}
		return is, was.pending && fits && was.fires(o)
	}
	fits := o.Expects == AnyState || o.Expects == 0 && !was.pending || o.Expects == AnyPending && was.pending ||
		was.pending && !was.unlearned && uint64(o.Expects) == was.last
	if o.Result == Refused {
		// A fired timer may still have an entry. Then the server refuses a set that expects no entry.
		return was, !fits || o.Expects == 0 && was.everSet
	}
	if o.repeats(was) {
		return was, true
	}
	is := state{
		last: max(was.last, o.Sequence), everSet: true, pending: o.Kind != Cancel, lastCancel: o.Kind == Cancel,
		cancelled: was.cancelled,
	}
	is.unlearned = is.pending && o.Sequence == 0
	if o.Kind == Cancel && was.pending && !was.unlearned {
		is.cancelled = was.cancelled.with(was.last)
	}
	is.series = was.changed(o)
	return is, fits && (o.Sequence == 0 || o.Sequence > was.last)
}

// generations is a list of generations in a type that the operator == compares.
type generations string

func (g generations) has(one uint64) bool {
	return strings.Contains(string(g), fmt.Sprintf("<%d>", one))
}

func (g generations) with(one uint64) generations { return g + generations(fmt.Sprintf("<%d>", one)) }

// series is the additional state of a series. The zero value is for a timer that fires once, and for a subject without
// a timer.
type series struct {
	id     uint64 // zero if no client learned the sequence of its set
	round  int    // number of the pending round; after the last round, rounds plus 1
	rounds int
	paused bool
}

// left reports whether the series has a pending round.
func (s series) left() bool { return s.round > 0 && s.round <= s.rounds }

// fires reports whether a delivery is that of the pending round. A paused series delivers no round, and a series skips
// no round.
func (s series) fires(o Op) bool {
	return !s.paused && o.Round == s.round && (s.id == 0 || o.Series == s.id)
}

func (s series) fired(o Op) series {
	if s.round == 0 {
		return series{}
	}
	return series{id: o.Series, round: s.round + 1, rounds: s.rounds}
}

// changed returns the series after an op that is not a delivery.
func (s series) changed(o Op) series {
	switch o.Kind {
	case Set:
		if o.Rounds == 0 {
			return series{}
		}
		return series{id: o.Sequence, round: 1, rounds: o.Rounds}
	case Cancel:
		return series{}
	case Pause:
		s.paused = true
	case Move:
		s.paused = false
	}
	return s
}
