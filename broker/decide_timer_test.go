package broker

import (
	"testing"
	"time"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/lane"
	"delaybroker/broker/layout"
	"delaybroker/broker/message"
	"delaybroker/broker/outbox"
	"delaybroker/broker/timer"
)

// TestDecideTimer is a timer at its exact edges, in its own lane and in a level, until its firing is decided and after.
func TestDecideTimer(t *testing.T) {
	const sec, half = time.Second, 30 * time.Minute
	set := timing{generation: 7, stage: stagePending}
	marker := timing{generation: 7, stage: stageDoubt}
	with := func(t timing, change func(*timing)) timing { change(&t); return t }
	gone := func(t *timing) { t.superseded = true }
	fired := func(t *timing) { t.stage, t.entry = stageFired, 9 }
	settled := func(t *timing) { t.stage, t.entry = stageSettled, 9 }
	past := message.Request{Expires: after(2 * sec)}
	for _, tt := range []struct {
		name    string
		timing  timing
		kind    layout.Kind
		delay   time.Duration
		due     time.Duration // after it was stored
		now     time.Duration
		crowded bool
		guess   bool // the time is an estimate
		request message.Request
		problem *message.Problem
		want    string
	}{
		{name: "due now", timing: set, want: "claim"},
		{name: "a nanosecond before", timing: set, due: 2 * sec, now: 2*sec - 1, want: "hold until 2s"},
		{name: "due, as far as is guessed", timing: set, due: sec, now: sec, guess: true, want: "hold until 1s"},
		{name: "due and in doubt", timing: marker, want: "examine"},
		{name: "due sooner than it would be armed", timing: set, due: sec - 1, want: "hold until 999.999999ms"},
		{name: "far", timing: set, due: time.Hour, want: "hold until 1s"},
		{name: "far, and rested", timing: set, due: time.Hour, now: sec, want: "hop into 30m"},
		{name: "far, and there is little room", timing: set, due: time.Hour, crowded: true, want: "hop into 30m"},
		{name: "within the horizon when it has rested", timing: set, due: 4 * sec, now: sec, want: "hold until 4s"},
		{name: "a marker that waits", timing: marker, kind: layout.Level, delay: half, due: half, want: "hold until 30m0s"},
		{name: "a marker that moves on", timing: marker, kind: layout.Level, delay: half, due: time.Hour,
			now: half - 50*time.Millisecond, want: "hop into 30m"},
		{name: "a marker that is due", timing: marker, kind: layout.Level, delay: half, due: half, now: half,
			want: "examine"},

		{name: "replaced", timing: with(set, gone), due: time.Hour, want: "arrive"},
		{name: "replaced when it was due", timing: with(marker, gone), want: "arrive"},
		{name: "replaced when it had fired", timing: with(with(set, fired), gone), want: "fire"},
		{name: "expired, and nobody has decided", timing: set, now: 3 * sec, request: past, want: "claim"},
		{name: "fired", timing: with(set, fired), want: "fire"},
		{name: "fired and expired", timing: with(set, fired), now: 3 * sec, request: past, want: "dead: expired"},
		{name: "bad", timing: set, due: time.Hour, problem: message.Problemf(message.BadTimer, "x"), want: "dead: bad_timer"},
		{name: "settled", timing: with(set, settled), want: "remove"},
		{name: "nothing to do", timing: timing{stage: stageSettled}, want: "arrive"},
	} {
		if tt.kind == "" {
			tt.kind = layout.Timers
		}
		tt.request.Due = after(tt.due)
		f := &flight{Stored: lane.Stored{At: after(0)}, request: tt.request, problem: tt.problem, timer: &tt.timing}
		p := plan{kind: tt.kind, delay: tt.delay, ladder: mustLadder(t, "1s 5s 1m 30m")}
		m := moment{now: epoch.Add(tt.now), proven: !tt.guess, crowded: tt.crowded}
		if got := next(p, m, f).String(); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// TestAfterClaim: only an acknowledgement above the generation, and no duplicate, says that it has fired. What can mean
// two things is looked at.
func TestAfterClaim(t *testing.T) {
	refused := func(code int) storeAnswer { return storeAnswer{ack: jsapi.Ack{Code: code}} }
	stored := func(seq uint64, duplicate bool) storeAnswer {
		return storeAnswer{ack: jsapi.Ack{Stream: "DELAY_TIMERS", Sequence: seq, Duplicate: duplicate}}
	}
	for name, tt := range map[string]struct {
		answer  storeAnswer
		want    string
		unclear bool
	}{
		"stored":                {stored(8, false), "claimed", false},
		"stored, below":         {stored(7, false), "back off until 50ms", true},
		"a duplicate":           {stored(8, true), "back off until 50ms", true},
		"another is last":       {refused(10071), "examine", true},
		"another is on its way": {refused(10164), "back off until 50ms", true},
		"no room":               {refused(10077), "back off until 50ms", false},
		"too large":             {refused(jsapi.CodeTooLarge), "dead: too_large", false},
		"no answer":             {storeAnswer{err: outbox.ErrTimeout}, "back off until 50ms", true},
		"no connection":         {storeAnswer{err: outbox.ErrDisconnected}, "hold until 0s", true},
		"too many":              {refused(jsapi.CodeTooMany), "back off until 50ms", true},
	} {
		f := &flight{timer: &timing{generation: 7}, request: message.Request{Due: after(0)}}
		if got := afterClaim(moment{now: epoch, proven: true}, f, tt.answer).String(); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
		if got := !tt.answer.wins(7) && tt.answer.unclear(); got != tt.unclear {
			t.Errorf("%s: unclear %t, want %t", name, got, tt.unclear)
		}
	}
}

func TestAfterExamine(t *testing.T) {
	f := &flight{timer: &timing{generation: 7}, request: message.Request{Due: after(0)}}
	for v, want := range map[timer.Verdict]string{
		timer.Again: "back off until 50ms", timer.Deliver: "claimed", timer.Wait: "hold until 6s", timer.Drop: "arrive",
	} {
		if got := afterExamine(moment{now: epoch, proven: true}, f, v, after(6*time.Second)).String(); got != want {
			t.Errorf("%d: %s, want %s", v, got, want)
		}
	}
}

// TestAfterRemoval: whatever stands on the subject of a settled timer is none of ours; silence is tried again.
func TestAfterRemoval(t *testing.T) {
	f := &flight{timer: &timing{generation: 7}, request: message.Request{Due: after(0)}}
	for want, answers := range map[string][]storeAnswer{
		"arrive": {{ack: jsapi.Ack{Sequence: 9}}, {ack: jsapi.Ack{Code: 10071}}, {}},
		"back off until 50ms": {
			{err: outbox.ErrTimeout}, {ack: jsapi.Ack{Code: 10164}}, {ack: jsapi.Ack{Code: jsapi.CodeTooMany}},
		},
	} {
		for _, a := range answers {
			if got := afterRemoval(moment{now: epoch, proven: true}, f, a).String(); got != want {
				t.Errorf("%+v: %s, want %s", a, got, want)
			}
		}
	}
}

// TestArrivedEntry: what is to be removed once a timer has arrived elsewhere, and what is told in its place.
func TestArrivedEntry(t *testing.T) {
	for _, tt := range []struct {
		name   string
		timing timing
		sent   *publish
		want   timing
	}{
		{"the marker of a set was stored", timing{generation: 7}, &publish{kind: hop},
			timing{generation: 7, entry: 7, keep: true, stage: stageSettled}},
		{"the marker of the first set was stored", timing{generation: 7, first: true}, &publish{kind: hop},
			timing{generation: 7, first: true}},
		{"a marker was stored again", timing{generation: 7, stage: stageDoubt}, &publish{kind: hop},
			timing{generation: 7, stage: stageDoubt}},
		{"dropped", timing{generation: 7, stage: stageDoubt}, nil, timing{generation: 7, stage: stageDoubt}},
		{"a bad set is a dead letter", timing{generation: 7}, &publish{kind: dead},
			timing{generation: 7, entry: 7, stage: stageSettled, what: message.OutcomeDead}},
		{"delivered", timing{entry: 9, stage: stageFired}, nil,
			timing{entry: 9, stage: stageSettled, what: message.OutcomeDelivered}},
		{"refused", timing{entry: 9, stage: stageFired}, &publish{kind: retry},
			timing{entry: 9, stage: stageSettled, what: message.OutcomeRetrying}},
		{"a dead letter", timing{entry: 9, stage: stageFired}, &publish{kind: dead},
			timing{entry: 9, stage: stageSettled, what: message.OutcomeDead}},
	} {
		got := tt.timing
		if remove := got.arrived(tt.sent); got != tt.want || remove != (tt.want.stage == stageSettled) {
			t.Errorf("%s: %+v, to be removed %t, want %+v", tt.name, got, remove, tt.want)
		}
		if got.arrived(tt.sent) {
			t.Errorf("%s: it is to be removed twice", tt.name)
		}
	}
}
