package role

import (
	"testing"
	"time"

	"delaybroker/broker/message"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/entry"
)

// TestJudge judges each entry that may be the last one when generation 7 fires.
func TestJudge(t *testing.T) {
	fired := func(generation uint64, by string) entry.Entry {
		id := message.ID{Stream: "DELAY_TIMERS", Sequence: generation, At: set}.String()
		return entry.Entry{
			Kind: entry.Fired, Generation: generation, Instance: by, Pending: entry.Pending{Request: message.Request{ID: id}},
		}
	}
	foreign := fired(7, "other")
	foreign.Request.ID = message.ID{Stream: "DELAY_TIMERS", Sequence: 7, At: set.Add(1)}.String()
	next := func(by string) entry.Entry {
		return entry.Entry{Replaced: 7, Instance: by, ReplacedRequest: fired(7, by).Request}
	}
	entryOf := func(kind entry.Kind) entry.Entry { return entry.Entry{Kind: kind} }
	for _, tt := range []struct {
		name  string
		found timer.State
		now   time.Duration // relative to the found entry
		want  Kind
	}{
		{name: "set", found: timer.State{Sequence: 7, At: set}, want: Restart},
		{name: "sequence of another message", found: timer.State{Sequence: 7, At: set.Add(1)}, want: Drop},
		{name: "sequence of a cancel", found: timer.State{Sequence: 7, At: set, Entry: entryOf(entry.Cancel)},
			want: Drop},

		{name: "another set", found: timer.State{Sequence: 8, At: set}, want: Drop},
		{name: "a cancel", found: timer.State{Sequence: 8, Entry: entryOf(entry.Cancel)}, want: Drop},
		{name: "over", found: timer.State{Sequence: 8, Entry: entryOf(entry.Over)}, want: Drop},
		{name: "unproven", found: timer.State{Sequence: 8, Entry: entryOf(entry.Unproven)}, want: BackOff},

		{name: "fired by us", found: timer.State{Sequence: 8, At: set, Entry: fired(7, "me")}, want: Deliver},
		{name: "fired by another", found: timer.State{Sequence: 8, At: set, Entry: fired(7, "other")}, want: Deliver},
		{name: "the next round, by us", found: timer.State{Sequence: 8, At: set, Entry: next("me")}, want: Deliver},
		{name: "the next round, by another", found: timer.State{Sequence: 8, At: set, Entry: next("other")}, want: Deliver},
		{name: "the next round, settled", found: timer.State{Sequence: 8, At: set, Entry: next("other"),
			Settled: true}, want: Drop},
		{name: "moved, without firing", found: timer.State{Sequence: 8, At: set, Entry: next("")}, want: Drop},
		{name: "another generation has fired", found: timer.State{Sequence: 9, At: set, Entry: fired(8, "me")}, want: Drop},
		{name: "fired in another history", found: timer.State{Sequence: 8, At: set, Entry: foreign}, want: Drop},

		{name: "none, unproven", found: timer.State{NoEntry: true, LastSeq: 6}, want: BackOff},
		{name: "none, proven", found: timer.State{NoEntry: true, LastSeq: 6, EndConfirmed: true}, want: Drop},
		{name: "none in a newer stream", found: timer.State{NoEntry: true, LastSeq: 6, Created: set.Add(1)},
			want: Drop},
		{name: "none", found: timer.State{NoEntry: true, LastSeq: 7}, want: Drop},
		{name: "an older entry, unproven", found: timer.State{Sequence: 5, LastSeq: 6}, want: BackOff},
		{name: "an older entry, after a power cut", found: timer.State{Sequence: 5, LastSeq: 7}, want: Drop},
	} {
		a := Alarm{Generation: 7, At: set}
		got := a.judge(tt.found)
		if got.Kind != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, Step{Kind: tt.want})
		}
	}
}
