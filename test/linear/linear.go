// Package linear judges the answers and the deliveries of one named timer. There must be an order of all operations in
// which every answer is correct.
//
// The entries of a timer's subject are a register with compare-and-set. An acknowledged set or cancel is in the order.
// A refused one found another generation than it expected. One without an answer may be in the order, at any time after
// it was sent, or not. A delivery removes the generation. Each operation takes effect between its call and its return.
// A timer that is still pending at the end was lost.
//
// A series is such a register, too. The delivery of a round writes the next round, under a generation that no client
// learns, until no round is left. So a missing round shows as one that stays pending. A round that is delivered twice,
// out of order, during a pause or after a cancel shows as one that was not pending. A move, a resumption and a change
// of the table write the same round again. A series that is paused at the end was not lost.
package linear

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// Kind is the kind of an Op.
type Kind string

// The kinds.
const (
	Set    Kind = "set" // also a move, and "fire now"
	Cancel Kind = "cancel"
	Fire   Kind = "fire" // a delivery

	// Operations on a series. They keep its rounds and the pending round.
	Move   Kind = "move"   // also a resumption
	Retime Kind = "retime" // a paused series stays paused
	Pause  Kind = "pause"

	theEnd Kind = "end"
)

// Expectations of an Op other than a generation.
const (
	Whatever = -1 // any state
	Standing = -2 // any pending generation
)

// Result is the answer to a client.
type Result string

// The results.
const (
	Done    Result = "done"
	Refused Result = "refused" // the last entry was another generation, or there was none
	Unknown Result = "unknown" // no answer, or no final one
)

// Op is one request of a client about one timer, or a delivery.
type Op struct {
	Kind    Kind
	Expects int64 // a generation, 0 for no entry, Whatever, or Standing
	Result  Result
	Rounds  int    // for a Set: number of rounds; zero if it fires once
	Round   int    // for a delivery: number of the round, from 1; zero if it fires once
	Series  uint64 // for the delivery of a round: the series
	// Sequence is the sequence of the entry or, for a delivery, its generation. It is zero if the client did not learn it.
	// A cancel without a sequence was a request to a broker. The broker answers "cancelled" for a generation that any
	// client has cancelled.
	Sequence uint64
	Call     time.Time
	Return   time.Time // ignored if the result is unknown
}

// Explain reports whether some order of the operations explains all answers. Package porcupine searches for the order.
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
	// At the end, every operation is in the order, except unknown ones. An unknown operation after the end has not taken
	// effect.
	history = append(history, porcupine.Operation{Input: Op{Kind: theEnd}, Call: end + 1, Return: end + 1})
	return porcupine.CheckOperations(porcupine.Model{
		Init: func() any { return state{} },
		Step: func(was, op, _ any) (bool, any) {
			is, ok := was.(state).after(op.(Op), told)
			return ok, is
		},
	}, history)
}

// again reports whether the answer "done" to an op is correct because the op's effect already existed.
func (o Op) again(was state) bool {
	switch {
	case o.Result != Done:
		return false
	case o.Kind == Pause:
		return was.paused && !was.wild && o.Sequence == was.last
	case o.Kind == Move: // a resumption without a pause; a move has its own sequence
		return was.pending && !was.paused && !was.wild && o.Sequence == was.last
	case o.Kind != Cancel || o.Sequence != 0:
		return false
	}
	return o.Expects == Standing && was.ended || o.Expects > 0 && was.cancelled.has(uint64(o.Expects))
}

// state is the state of the last entry of the subject. A fired or cancelled timer may be removed at any time.
type state struct {
	last    uint64 // sequence of the last set or cancel that a client learned; zero before the first
	begun   bool   // there was a set
	pending bool
	wild    bool // pending, with a generation that no client learned

	cancelled generations // cancelled generations, except those that no client learned
	ended     bool        // the last entry is a cancel
	over      bool        // the end: no operation follows

	series
}

// after returns the state after an op, or false if the op cannot have this answer in this state. The parameter told has
// the generations that clients learned.
func (was state) after(o Op, told map[uint64]bool) (state, bool) {
	switch {
	case was.over:
		return was, o.Result == Unknown
	case o.Kind == theEnd:
		is := was
		is.over = true
		return is, !was.pending || was.paused
	case o.Kind == Fire:
		fits := was.last == o.Sequence && !was.wild || was.wild && o.Sequence > was.last && !told[o.Sequence]
		is := state{last: o.Sequence, begun: true, cancelled: was.cancelled}
		if is.series = was.fired(o); is.left() {
			is.pending, is.wild = true, true // the next round, whose generation no client learned
		}
		return is, was.pending && fits && was.fires(o)
	}
	fits := o.Expects == Whatever || o.Expects == 0 && !was.pending || o.Expects == Standing && was.pending ||
		was.pending && !was.wild && uint64(o.Expects) == was.last
	if o.Result == Refused {
		// A fired timer may still have an entry, so that "only if there is none" is refused.
		return was, !fits || o.Expects == 0 && was.begun
	}
	if o.again(was) {
		return was, true
	}
	is := state{
		last: max(was.last, o.Sequence), begun: true, pending: o.Kind != Cancel, ended: o.Kind == Cancel,
		cancelled: was.cancelled,
	}
	is.wild = is.pending && o.Sequence == 0
	if o.Kind == Cancel && was.pending && !was.wild {
		is.cancelled = was.cancelled.with(was.last)
	}
	is.series = was.changed(o)
	return is, fits && (o.Sequence == 0 || o.Sequence > was.last)
}

// generations is a set of generations that can be compared.
type generations string

func (g generations) has(one uint64) bool {
	return strings.Contains(string(g), fmt.Sprintf("<%d>", one))
}

func (g generations) with(one uint64) generations { return g + generations(fmt.Sprintf("<%d>", one)) }

// series is the additional state of a series. The zero value is for a timer that fires once, and for no timer.
type series struct {
	id     uint64 // zero if no client learned the sequence of its set
	round  int    // number of the pending round; above rounds if none is left
	rounds int
	paused bool
}

// left reports whether a round is left.
func (s series) left() bool { return s.round > 0 && s.round <= s.rounds }

// fires reports whether a delivery is that of the pending round. A paused series delivers no round, and no round is
// left out.
func (s series) fires(o Op) bool {
	return !s.paused && o.Round == s.round && (s.id == 0 || o.Series == s.id)
}

// fired returns the series after the delivery of a round.
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
