package timer

import (
	"testing"

	"delaybroker/broker/message"
	"delaybroker/broker/timer/entry"
)

// TestDecide checks the outcome for each last entry and each verb, for generation 5 and for any generation, with all
// publishes answered and with one publish in doubt.
func TestDecide(t *testing.T) {
	t.Parallel()
	over := func(generation uint64, what entry.Outcome) State {
		return State{Sequence: generation + 2, LastSeq: 99,
			Entry: entry.Entry{Kind: entry.Over, Generation: generation, Outcome: what}}
	}
	found := map[string]State{
		"none":             {NoEntry: true, LastSeq: 99},
		"none, behind":     {NoEntry: true, LastSeq: 4},
		"older":            {Sequence: 3, LastSeq: 99},
		"set":              {Sequence: 5, LastSeq: 99},
		"another":          {Sequence: 8, LastSeq: 99},
		"ours":             {Sequence: 8, LastSeq: 99, Entry: entry.Entry{Pending: entry.Pending{Token: "mine"}}},
		"cancelled":        {Sequence: 8, LastSeq: 99, Entry: entry.Entry{Kind: entry.Cancel, Cancelled: 5}},
		"another's cancel": {Sequence: 8, LastSeq: 99, Entry: entry.Entry{Kind: entry.Cancel, Cancelled: 7}},
		"blind cancel":     {Sequence: 8, LastSeq: 99, Entry: entry.Entry{Kind: entry.Cancel}},
		"fired":            {Sequence: 8, LastSeq: 99, Entry: entry.Entry{Kind: entry.Fired, Generation: 5}},
		"another fired":    {Sequence: 8, LastSeq: 99, Entry: entry.Entry{Kind: entry.Fired, Generation: 7}},
		"ours fired": {Sequence: 9, LastSeq: 99,
			Entry: entry.Entry{Kind: entry.Fired, Generation: 8, Pending: entry.Pending{Token: "mine"}}},
		"delivered":  over(5, entry.Delivered),
		"next round": {Sequence: 8, LastSeq: 99, Entry: entry.Entry{Replaced: 5, Instance: "x"}},
		"moved":      {Sequence: 8, LastSeq: 99, Entry: entry.Entry{Replaced: 5}}, // the round is rescheduled
		"paused":     {Sequence: 5, LastSeq: 99, Entry: entry.Entry{Kind: entry.Paused}},
		"unproven":   {Sequence: 8, LastSeq: 99, Entry: entry.Entry{Kind: entry.Unproven}},
	}
	const ask, look = "ask", "look"
	for name, want := range map[string]struct {
		cancel, doubted, any, anyDoubted, move, absent string
	}{
		"none":             {"not_found", "unknown", "not_found", "unknown", "not_found", ask},
		"none, behind":     {"unknown", look, "not_found", "unknown", "unknown", ask},
		"older":            {"not_found", "unknown", ask, ask, "not_found", "conflict"},
		"set":              {ask, ask, ask, ask, ask, "conflict"},
		"another":          {"conflict", "unknown", ask, ask, "conflict", "conflict"},
		"ours":             {"conflict", "unknown", ask, ask, "moved", "pending"},
		"cancelled":        {"cancelled", "cancelled", "cancelled", "cancelled", "conflict", "conflict"},
		"another's cancel": {"conflict", "unknown", "cancelled", "cancelled", "conflict", "conflict"},
		"blind cancel":     {"conflict", "unknown", "unknown", "unknown", "conflict", "conflict"},
		"fired":            {"too_late", "too_late", "too_late", "too_late", "too_late", "conflict"},
		"another fired":    {"conflict", "unknown", "too_late", "unknown", "conflict", "conflict"},
		"ours fired":       {"conflict", "unknown", "too_late", "unknown", "moved", "fired"},
		"delivered":        {"too_late", "too_late", "too_late", "too_late", "too_late", "conflict"},
		"next round":       {"too_late", "too_late", ask, ask, "too_late", "conflict"},
		"moved":            {"conflict", "unknown", ask, ask, "conflict", "conflict"},
		"paused":           {ask, ask, ask, ask, ask, "conflict"},
		"unproven":         {"unknown", look, "unknown", look, "unknown", "unknown"},
	} {
		doubt := Doubt{Unanswered: true, Generation: 5}
		for _, tt := range []struct {
			asked Call
			doubt Doubt
			want  string
		}{
			{Call{Verb: Cancel, Generation: 5, ID: "mine"}, Doubt{}, want.cancel},
			{Call{Verb: Cancel, Generation: 5, ID: "mine"}, doubt, want.doubted},
			{Call{Verb: Cancel, ID: "mine"}, Doubt{}, want.any},
			{Call{Verb: Cancel, ID: "mine"}, doubt, want.anyDoubted},
			{Call{Verb: Move, Generation: 5, ID: "mine"}, Doubt{}, want.move},
			{Call{Verb: Set, Conditional: true, ID: "mine"}, Doubt{}, want.absent},
		} {
			next, answer := Decide(tt.asked, found[name], tt.doubt)
			got := map[Next]string{Publish: ask, ReadAgain: look, Reply: string(answer.Outcome)}[next]
			if got != tt.want {
				t.Errorf("%s: %+v with doubt %t: %s (%s), want %s", name, tt.asked, tt.doubt.Unanswered, got, answer.Why, tt.want)
			}
		}
	}
}

// TestFailureIsCountedOnce: a failed round is counted unless the entry names it or a later one, or is paused, or is of
// another series.
func TestFailureIsCountedOnce(t *testing.T) {
	t.Parallel()
	const series = 5
	pending := func(kind entry.Kind, series uint64, failed int) State {
		origin := message.Origin{Series: series, Round: 9, FailedRound: failed}
		return State{Sequence: 8, LastSeq: 99, Entry: entry.Entry{
			Kind: kind, Pending: entry.Pending{Request: message.Request{}.WithOrigin(origin)},
		}}
	}
	written := func(s State) State {
		s.Entry.Token = "x"
		return s
	}
	for name, tt := range map[string]struct {
		found State
		next  Next
		want  Outcome
	}{
		"new":            {pending(entry.Set, series, 6), Publish, ""},
		"counted":        {pending(entry.Set, series, 7), Reply, Pending},
		"later":          {pending(entry.Set, series, 8), Reply, Pending},
		"paused":         {pending(entry.Paused, series, 0), Reply, Paused},
		"another series": {pending(entry.Set, 6, 0), Reply, Conflict},
		"ended":          {State{NoEntry: true, LastSeq: 99}, Reply, NotFound},
		"paused by this": {written(pending(entry.Paused, series, 7)), Reply, Paused}, // its acknowledgement was lost
	} {
		next, got := Decide(Call{Verb: Fail, Series: series, Round: 7, ID: "x"}, tt.found, Doubt{})
		if next != tt.next || got.Outcome != tt.want {
			t.Errorf("%s: step %d, %+v, want step %d and %s", name, next, got, tt.next, tt.want)
		}
	}
}

// TestDoubtedSet: a set without an answer is not repeated if its timer may have fired and ended: it would fire twice.
func TestDoubtedSet(t *testing.T) {
	t.Parallel()
	var doubt Doubt
	doubt.Add(0)
	for name, asked := range map[string]Call{
		"a conditional set": {Verb: Set, Conditional: true, ID: "mine"}, "a set": {Verb: Set, ID: "mine"},
	} {
		next, answer := Decide(asked, State{NoEntry: true, LastSeq: 9}, doubt)
		if next != ReadAgain || answer.Outcome != Unknown {
			t.Errorf("%s, without an entry: got %v, %+v, want another read", name, next, answer)
		}
		other := State{Sequence: 9, LastSeq: 9, Entry: entry.Entry{Pending: entry.Pending{Token: "theirs"}}}
		if next, answer := Decide(asked, other, doubt); next != Reply || answer.Outcome != Unknown {
			t.Errorf("%s, with the entry of another request: got %v, %+v, want unknown", name, next, answer)
		}
	}
	doubt.Add(5)
	if doubt.Generation != 0 {
		t.Errorf("two generations are in doubt: got %+v, want generation 0", doubt)
	}
}
