package linear

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// Kind is what an Op is.
type Kind string

// The kinds.
const (
	Set    Kind = "set" // also a move, and "fire now"
	Cancel Kind = "cancel"
	Fire   Kind = "fire" // a delivery

	// Of a series. They leave its rounds, and what is pending, as they are.
	Move   Kind = "move"   // also a resumption
	Retime Kind = "retime" // a pause stays one
	Pause  Kind = "pause"

	theEnd Kind = "end"
)

// What an Op may expect besides a generation.
const (
	Whatever = -1 // there is, or is not
	Standing = -2 // whatever there is, but there must be something
)

// Result is what a client was told.
type Result string

// The results.
const (
	Done    Result = "done"
	Refused Result = "refused" // another generation stood there, or none
	Unknown Result = "unknown" // nothing was told, or nothing that is final
)

// Op is what one client has asked of one timer, or a delivery.
type Op struct {
	Kind    Kind
	Expects int64 // generation, 0 for none, Whatever, or Standing
	Result  Result
	Rounds  int    // of a Set: how many rounds it has; zero if it fires once
	Round   int    // of a delivery, from 1; zero of what fires once
	Series  uint64 // of a delivery of a round
	// Sequence is that of the entry; of a delivery, its generation. It is zero where nobody was told. A cancel without one
	// was asked of a broker, which calls a generation cancelled whoever has cancelled it.
	Sequence uint64
	Call     time.Time
	Return   time.Time // does not count for what is unknown
}

// Explain reports whether there is such an order. Porcupine searches for it.
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
	// By the end everything is in the order but for what is unknown. What comes behind the end has never been done.
	history = append(history, porcupine.Operation{Input: Op{Kind: theEnd}, Call: end + 1, Return: end + 1})
	return porcupine.CheckOperations(porcupine.Model{
		Init: func() any { return state{} },
		Step: func(was, op, _ any) (bool, any) {
			is, ok := was.(state).after(op.(Op), told)
			return ok, is
		},
	}, history)
}

// again reports whether an op is answered as done because it had been done already.
func (o Op) again(was state) bool {
	switch {
	case o.Result != Done:
		return false
	case o.Kind == Pause:
		return was.paused && !was.wild && o.Sequence == was.last
	case o.Kind == Move: // a resumption of what is not paused; a move has a sequence of its own
		return was.pending && !was.paused && !was.wild && o.Sequence == was.last
	case o.Kind != Cancel || o.Sequence != 0:
		return false
	}
	return o.Expects == Standing && was.ended || o.Expects > 0 && was.cancelled.has(uint64(o.Expects))
}

// state is what the last entry of the subject is. What has fired or was cancelled may be forgotten at any time.
type state struct {
	last    uint64 // sequence of the last set or cancel that somebody was told of; zero before the first
	begun   bool   // there was one, told or not
	pending bool
	wild    bool // and its generation is one that nobody was told of

	cancelled generations // that were cancelled, whatever came after it; without those that nobody was told of
	ended     bool        // the last entry is a cancel
	over      bool        // nothing comes any more

	series
}

// after returns the state after an op, or false if the op cannot have this answer there. Told are the generations that
// somebody was told of.
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
			is.pending, is.wild = true, true // the next round, of which nobody was told
		}
		return is, was.pending && fits && was.fires(o)
	}
	fits := o.Expects == Whatever || o.Expects == 0 && !was.pending || o.Expects == Standing && was.pending ||
		was.pending && !was.wild && uint64(o.Expects) == was.last
	if o.Result == Refused {
		// What has fired may not be forgotten yet, so that "only if there is none" is refused.
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

// generations are some, in a form that can be compared.
type generations string

func (g generations) has(one uint64) bool {
	return strings.Contains(string(g), fmt.Sprintf("<%d>", one))
}

func (g generations) with(one uint64) generations { return g + generations(fmt.Sprintf("<%d>", one)) }
