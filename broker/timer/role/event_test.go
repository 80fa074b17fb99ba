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
		Default: "default", BackOff: "back off", Repeat: "repeat", Copy: "copy", Read: "read", Claim: "claim",
		Restart: "restart", Continue: "continue", Deliver: "deliver", Remove: "remove", Drop: "drop",
	}[s.Kind]
	switch s.Kind {
	case Hold:
		return fmt.Sprintf("hold until %s", s.At.Stamp().Sub(set))
	case Dead:
		return fmt.Sprintf("dead: %s", s.Problem.Code)
	}
	return name
}

// refused and stored are answers of the timers' stream to a publish.
func refused(code int) Published { return Published{Ack: jsapi.Ack{Code: code}} }

func stored(seq uint64) Published {
	return Published{Ack: jsapi.Ack{Stream: "DELAY_TIMERS", Sequence: seq}}
}

// TestFiringAnswered: only an acknowledgement that is no duplicate, with a sequence above the generation, proves the
// firing. After an ambiguous answer, the state is read.
func TestFiringAnswered(t *testing.T) {
	duplicate := stored(8)
	duplicate.Ack.Duplicate = true
	for name, tt := range map[string]struct {
		answer  Published
		want    string
		unclear bool
	}{
		"stored":                {stored(8), "deliver", false},
		"stored, below":         {stored(7), "back off", true},
		"duplicate":             {duplicate, "back off", true},
		"conflict":              {refused(10071), "read", true},
		"other publish pending": {refused(10164), "back off", true},
		"no room":               {refused(10077), "back off", false},
		"too large":             {refused(jsapi.CodeTooLarge), "dead: too_large", false},
		"no answer":             {Published{Err: acks.ErrTimeout}, "repeat", true},
		"no connection":         {Published{Err: acks.ErrDisconnected}, "repeat", true},
		"queue full":            {refused(jsapi.CodeTooMany), "back off", true},
	} {
		a := &Alarm{Generation: 7, state: pending, lane: newLane()}
		if got := a.Handle(tt.answer, Situation{}).String(); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
		if got := a.state == doubt; got != tt.unclear {
			t.Errorf("%s: unclear %t, want %t", name, got, tt.unclear)
		}
		if won := tt.want == "deliver"; won != (a.state == fired && a.removal.entry == 8) {
			t.Errorf("%s: the alarm is %+v", name, a)
		}
	}
}

// newLane returns a lane without connections.
func newLane() *Lane { return NewStream(Config{}).Lane() }

// TestEntriesRemoved: after a removal, a timer needs no further step. A removal without an answer is repeated.
func TestEntriesRemoved(t *testing.T) {
	for want, err := range map[string]error{"drop": nil, "repeat": acks.ErrTimeout} {
		a := &Alarm{lane: newLane(), state: settled}
		if got := a.Handle(entriesRemoved{err: err}, Situation{}).String(); got != want {
			t.Errorf("%v: %s, want %s", err, got, want)
		}
	}
}

// TestOutcomeAnswered: after the outcome of a timer is stored, all other entries are removed. If another entry was
// stored before the outcome, or the stream has no room for the outcome, the entries are removed without an outcome.
func TestOutcomeAnswered(t *testing.T) {
	open := removal{entry: 9, outcome: entry.Delivered}
	for name, tt := range map[string]struct {
		answer Published
		want   string
		left   removal
	}{
		"stored":          {stored(10), "remove", removal{entry: 10, reach: below}},
		"conflict":        {refused(jsapi.CodeWrongLast), "remove", removal{entry: 9}},
		"other pending":   {refused(jsapi.CodeLastInFlight), "repeat", open},
		"same id pending": {refused(jsapi.CodeInFlight), "repeat", open},
		"queue full":      {refused(jsapi.CodeTooMany), "repeat", open},
		"no answer":       {Published{Err: acks.ErrTimeout}, "repeat", open},
		"no room":         {refused(10077), "remove", removal{entry: 9}},
		"stored below":    {stored(9), "repeat", open},
	} {
		a := &Alarm{Generation: 7, state: arrived, removal: open, lane: newLane()}
		if got := a.Handle(tt.answer, Situation{}).String(); got != tt.want || a.removal != tt.left {
			t.Errorf("%s: %s with %+v, want %s with %+v", name, got, a.removal, tt.want, tt.left)
		}
		if a.MayRepeat() == (name == "stored") {
			t.Errorf("%s: another instance would deliver again: %t", name, a.MayRepeat())
		}
	}
}

// TestArrivedEntry checks which entries are removed after the message of a timer has arrived, and which outcome is
// stored.
func TestArrivedEntry(t *testing.T) {
	l := newLane()
	for _, tt := range []struct {
		name  string
		alarm Alarm
		at    Destination
		want  state
		left  removal
	}{
		{"the marker of a set was stored", Alarm{Generation: 7, state: pending}, Level,
			settled, removal{entry: 7, reach: below, probablyOldest: true}},
		{"the marker of the first set was stored", Alarm{Generation: 7, state: pending, before: noneBefore}, Level,
			pending, removal{}},
		{"the marker of a replaced set was stored", Alarm{Generation: 7, state: replaced}, Level,
			settled, removal{entry: 7, reach: onlyThis}},
		{"a marker was stored again", Alarm{Generation: 7, state: copyable}, Level, copyable, removal{}},
		{"dropped", Alarm{Generation: 7, state: doubt}, Target, doubt, removal{}},
		{"an invalid set is a dead letter", Alarm{Generation: 7, state: pending}, DeadLetters,
			arrived, removal{entry: 7, outcome: entry.Dead}},
		{"delivered", Alarm{state: fired, removal: removal{entry: 9}}, Target,
			arrived, removal{entry: 9, outcome: entry.Delivered}},
		{"refused", Alarm{state: fired, removal: removal{entry: 9}}, RetryLane,
			arrived, removal{entry: 9, outcome: entry.Retrying}},
		{"waits for its rate", Alarm{state: fired, removal: removal{entry: 9}}, Level,
			arrived, removal{entry: 9, outcome: entry.Retrying}},
		{"a dead letter", Alarm{state: fired, removal: removal{entry: 9}}, DeadLetters,
			arrived, removal{entry: 9, outcome: entry.Dead}},
	} {
		got := tt.alarm
		got.lane = l
		if remove := got.Arrived(tt.at); got.state != tt.want || got.removal != tt.left || remove != (tt.want >= arrived) {
			t.Errorf("%s: state %d, to be removed %t, %+v; want state %d, %+v", tt.name, got.state, remove, got.removal,
				tt.want, tt.left)
		}
		if got.Arrived(tt.at) {
			t.Errorf("%s: the entries are to be removed twice", tt.name)
		}
	}
}
