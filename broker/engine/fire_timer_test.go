package engine

import (
	"testing"
	"time"

	"delaybroker/broker/acks"
	"delaybroker/broker/config"
	"delaybroker/broker/jsapi"
	"delaybroker/broker/lane"
	"delaybroker/broker/message"
	"delaybroker/broker/streams"
	"delaybroker/broker/timer/entry"
	"delaybroker/broker/timer/role"
)

// TestDecideTimer checks the next step of a timer around each limit, in its own lane and in a level, before and after
// its firing is stored.
func TestDecideTimer(t *testing.T) {
	const sec, half = time.Second, 30 * time.Minute
	now := time.Now()
	w := newTestWorker(t, streams.Spec{Kind: streams.Timers, Stream: "DELAY_TIMERS"}, now)
	read := func(header message.Header) *role.Alarm { return entryRead(w, 7, now, header).timer }
	set := func() *role.Alarm { return read(message.Header{"Delay-For": {"1h"}}) }
	later := message.Incoming{
		Subject: "delaytimer.key.orders.x", Sequence: 8, At: now, Header: message.Header{"Delay-For": {"1h"}},
	}
	marker := func() *role.Alarm {
		a := set()
		a.Handle(role.Published{Err: acks.ErrTimeout}, role.Situation{})
		return a
	}
	fired := func() *role.Alarm {
		a := set()
		a.Handle(role.Published{Ack: jsapi.Ack{Stream: "DELAY_TIMERS", Sequence: 9}}, role.Situation{})
		return a
	}
	replaced := func(of func() *role.Alarm) func() *role.Alarm {
		return func() *role.Alarm {
			a := of()
			w.timers.lane.Read(later, 0, a, true)
			return a
		}
	}
	settled := func() *role.Alarm {
		a := fired()
		a.Arrived(role.Target)
		return a
	}
	over := func() *role.Alarm { return read(entry.Pending{}.OverHeader(5, 6, entry.Delivered)) }
	past := message.Request{Expires: after(2 * sec)}
	for _, tt := range []struct {
		name     string
		timer    func() *role.Alarm
		kind     laneKind
		delay    time.Duration
		due      time.Duration // after it was stored
		now      time.Duration
		crowded  bool
		estimate bool // the time is an estimate
		request  message.Request
		problem  *message.Problem
		want     string
	}{
		{name: "due now", timer: set, want: "claim"},
		{name: "a nanosecond before", timer: set, due: 2 * sec, now: 2*sec - 1, want: "hold until 2s"},
		{name: "due by an estimate", timer: set, due: sec, now: sec, estimate: true, want: "hold until 1s"},
		{name: "due and in doubt", timer: marker, want: "examine"},
		{name: "due before the marker would be sent", timer: set, due: sec - 1, want: "hold until 999.999999ms"},
		{name: "far", timer: set, due: time.Hour, want: "hold until 10s"},
		{name: "less far", timer: set, due: 12 * sec, want: "hold until 6s"},
		{name: "far, after its wait", timer: set, due: time.Hour, now: 10 * sec, want: "hop into 30m"},
		{name: "far, memory short", timer: set, due: time.Hour, crowded: true, want: "hop into 30m"},
		{name: "within the horizon after its wait", timer: set, due: 4 * sec, now: sec, want: "hold until 4s"},
		{name: "a marker that waits", timer: marker, kind: plainLane{}, delay: half, due: half, want: "hold until 30m0s"},
		{name: "a marker that moves on", timer: marker, kind: plainLane{}, delay: half, due: time.Hour,
			now: half - 50*time.Millisecond, want: "hop into 30m"},
		{name: "a marker that is due", timer: marker, kind: plainLane{}, delay: half, due: half, now: half,
			want: "examine"},

		{name: "replaced", timer: replaced(set), due: time.Hour, want: "remove"},
		{name: "replaced when it was due", timer: replaced(set), want: "remove"},
		{name: "replaced when it may have fired", timer: replaced(marker), want: "examine"},
		{name: "replaced when it had fired", timer: replaced(fired), want: "fire"},
		{name: "expired, firing not stored", timer: set, now: 3 * sec, request: past, want: "claim"},
		{name: "fired", timer: fired, want: "fire"},
		{name: "fired and expired", timer: fired, now: 3 * sec, request: past, want: "dead: expired"},
		{name: "bad", timer: set, due: time.Hour, problem: message.Problemf(message.BadTimer, "x"), want: "dead: bad_timer"},
		{name: "settled", timer: settled, want: "remove"},
		{name: "nothing to do", timer: over, want: "arrive"},
	} {
		if tt.kind == nil {
			tt.kind = new(timersLane)
		}
		tt.request.Due = after(tt.due)
		f := &flight{Message: lane.Message{At: after(0)}, request: tt.request, problem: tt.problem, timer: tt.timer()}
		p := plan{kind: tt.kind, delay: tt.delay, Config: &config.Config{Ladder: mustLadder(t, "1s 5s 1m 30m")}}
		m := moment{now: epoch.Add(tt.now), proven: !tt.estimate, crowded: tt.crowded}
		if got := nextStep(p, m, f).String(); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// TestTimerStep: a step of package timer/role becomes a step of the message. A request without an answer is repeated as
// soon as the connection is back.
func TestTimerStep(t *testing.T) {
	f := &flight{timer: new(role.Alarm), request: message.Request{Due: after(0)}}
	for _, tt := range []struct {
		step role.Step
		want string
	}{
		{role.Step{Kind: role.Hold, At: epoch.Add(6 * time.Second)}, "hold until 6s"},
		{role.Step{Kind: role.BackOff}, "back off until 50ms"},
		{role.Step{Kind: role.Repeat, Err: acks.ErrTimeout}, "back off until 50ms"},
		{role.Step{Kind: role.Repeat, Err: acks.ErrDisconnected}, "hold until 0s"},
		{role.Step{Kind: role.Copy}, "read a copy"},
		{role.Step{Kind: role.Read}, "examine"},
		{role.Step{Kind: role.Claim}, "claim"},
		{role.Step{Kind: role.Restart}, "decide again"},
		{role.Step{Kind: role.Continue}, "decide again"},
		{role.Step{Kind: role.Deliver}, "decide again"},
		{role.Step{Kind: role.Remove}, "remove"},
		{role.Step{Kind: role.Drop}, "arrive"},
		{role.Step{Kind: role.Dead, Problem: message.Problemf(message.TooLarge, "x")}, "dead: too_large"},
	} {
		if got := timerStep(moment{now: epoch, proven: true}, f, tt.step).String(); got != tt.want {
			t.Errorf("%d: %s, want %s", tt.step.Kind, got, tt.want)
		}
	}
}
