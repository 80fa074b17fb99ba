package role

import (
	"fmt"
	"testing"
	"time"

	"delaybroker/broker/acks"
	"delaybroker/broker/jsapi"
	"delaybroker/broker/timer/entry"
)

var set = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)

// String returns a step in the notation of the tables of this package. Times are relative to the set.
func (s Step) String() string {
	name := map[Kind]string{
		Default: "default", BackOff: "back off", Repeat: "repeat", Examine: "examine", Claim: "claim", Restart: "restart",
		ReadEarlierEntries: "read earlier", Deliver: "deliver", Remove: "remove", Drop: "drop",
	}[s.Kind]
	switch s.Kind {
	case Hold:
		return fmt.Sprintf("hold until %s", s.At.Stamp().Sub(set))
	case Dead:
		return fmt.Sprintf("dead: %s", s.Problem.Code)
	}
	return name
}

// TestAfterClaim: only an acknowledgement that is no duplicate, with a sequence above the generation, proves the
// firing. After an ambiguous answer, the state is read.
func TestAfterClaim(t *testing.T) {
	refused := func(code int) Answer { return Answer{Ack: jsapi.Ack{Code: code}} }
	stored := func(seq uint64, duplicate bool) Answer {
		return Answer{Ack: jsapi.Ack{Stream: "DELAY_TIMERS", Sequence: seq, Duplicate: duplicate}}
	}
	for name, tt := range map[string]struct {
		answer  Answer
		want    string
		unclear bool
	}{
		"stored":                {stored(8, false), "deliver", false},
		"stored, below":         {stored(7, false), "back off", true},
		"duplicate":             {stored(8, true), "back off", true},
		"conflict":              {refused(10071), "examine", true},
		"other publish pending": {refused(10164), "back off", true},
		"no room":               {refused(10077), "back off", false},
		"too large":             {refused(jsapi.CodeTooLarge), "dead: too_large", false},
		"no answer":             {Answer{Err: acks.ErrTimeout}, "repeat", true},
		"no connection":         {Answer{Err: acks.ErrDisconnected}, "repeat", true},
		"queue full":            {refused(jsapi.CodeTooMany), "back off", true},
	} {
		a := &Alarm{Generation: 7}
		if got := new(Stream).AfterClaim(a, 1, tt.answer).String(); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
		won := a.Claimed(tt.answer)
		if got := a.Stage == Doubt; got != tt.unclear {
			t.Errorf("%s: unclear %t, want %t", name, got, tt.unclear)
		}
		if won != (tt.want == "deliver") || won != (a.Stage == Fired && a.Entry == 8) {
			t.Errorf("%s: won %t, and the alarm is %+v", name, won, a)
		}
	}
}

// TestAfterRemoval: after a removal, a timer needs no further step. A removal without an answer is repeated.
func TestAfterRemoval(t *testing.T) {
	for want, err := range map[string]error{"drop": nil, "repeat": acks.ErrTimeout} {
		if got := new(Alarm).AfterRemoval(err).String(); got != want {
			t.Errorf("%v: %s, want %s", err, got, want)
		}
	}
}

// TestAfterOutcome: after the outcome of a timer is stored, all other entries are removed. If another entry was stored
// before the outcome, or the stream has no room for the outcome, the entries are removed without an outcome.
func TestAfterOutcome(t *testing.T) {
	fired := Removal{Entry: 9, Outcome: entry.Delivered}
	for name, tt := range map[string]struct {
		answer Answer
		want   string
		left   Removal
	}{
		"stored": {Answer{Ack: jsapi.Ack{Stream: "DELAY_TIMERS", Sequence: 10}}, "remove",
			Removal{Entry: 10, Keep: true}},
		"conflict":        {Answer{Ack: jsapi.Ack{Code: jsapi.CodeWrongLast}}, "remove", Removal{Entry: 9}},
		"other pending":   {Answer{Ack: jsapi.Ack{Code: jsapi.CodeLastInFlight}}, "repeat", fired},
		"same id pending": {Answer{Ack: jsapi.Ack{Code: jsapi.CodeInFlight}}, "repeat", fired},
		"queue full":      {Answer{Ack: jsapi.Ack{Code: jsapi.CodeTooMany}}, "repeat", fired},
		"no answer":       {Answer{Err: acks.ErrTimeout}, "repeat", fired},
		"no room":         {Answer{Ack: jsapi.Ack{Code: 10077}}, "remove", Removal{Entry: 9}},
		"stored below":    {Answer{Ack: jsapi.Ack{Stream: "DELAY_TIMERS", Sequence: 9}}, "repeat", fired},
	} {
		a := &Alarm{Generation: 7, Stage: Settled, Removal: fired}
		if got := a.AfterOutcome(tt.answer).String(); got != tt.want || a.Removal != tt.left {
			t.Errorf("%s: %s with %+v, want %s with %+v", name, got, a.Removal, tt.want, tt.left)
		}
	}
}

// TestArrivedEntry checks which entries are removed after the message of a timer has arrived, and which outcome is
// stored.
func TestArrivedEntry(t *testing.T) {
	for _, tt := range []struct {
		name  string
		alarm Alarm
		at    Destination
		want  Alarm
	}{
		{"the marker of a set was stored", Alarm{Generation: 7}, Level,
			Alarm{Generation: 7, Stage: Settled, Removal: Removal{Entry: 7, Keep: true, ProbablyOldest: true}}},
		{"the marker of the first set was stored", Alarm{Generation: 7, First: true}, Level,
			Alarm{Generation: 7, First: true}},
		{"a marker was stored again", Alarm{Generation: 7, Stage: Doubt}, Level,
			Alarm{Generation: 7, Stage: Doubt}},
		{"dropped", Alarm{Generation: 7, Stage: Doubt}, Target, Alarm{Generation: 7, Stage: Doubt}},
		{"an invalid set is a dead letter", Alarm{Generation: 7}, DeadLetters,
			Alarm{Generation: 7, Stage: Settled, arrived: true, Removal: Removal{Entry: 7, Outcome: entry.Dead}}},
		{"delivered", Alarm{Stage: Fired, Removal: Removal{Entry: 9}}, Target,
			Alarm{Stage: Settled, arrived: true, Removal: Removal{Entry: 9, Outcome: entry.Delivered}}},
		{"refused", Alarm{Stage: Fired, Removal: Removal{Entry: 9}}, RetryLane,
			Alarm{Stage: Settled, arrived: true, Removal: Removal{Entry: 9, Outcome: entry.Retrying}}},
		{"a dead letter", Alarm{Stage: Fired, Removal: Removal{Entry: 9}}, DeadLetters,
			Alarm{Stage: Settled, arrived: true, Removal: Removal{Entry: 9, Outcome: entry.Dead}}},
	} {
		got := tt.alarm
		if remove := got.Arrived(tt.at); got != tt.want || remove != (tt.want.Stage == Settled) {
			t.Errorf("%s: %+v, to be removed %t, want %+v", tt.name, got, remove, tt.want)
		}
		if got.Arrived(tt.at) {
			t.Errorf("%s: the entries are to be removed twice", tt.name)
		}
	}
}
