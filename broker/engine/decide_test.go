package engine

import (
	"testing"
	"time"

	"delaybroker/broker/config"
	"delaybroker/broker/lane"
	"delaybroker/broker/message"
)

// TestDecide checks the next step around each limit, in the intake and in a level. The horizon of this ladder is 3 s,
// and the lookahead is 50 ms.
func TestDecide(t *testing.T) {
	ladder := mustLadder(t, "1s 5s 1m 30m")
	const ms, sec, half = time.Millisecond, time.Second, 30 * time.Minute // half an hour
	retryAt := func(d time.Duration) message.Request { return message.Request{RetryAt: after(d)} }
	expires := func(d time.Duration) message.Request { return message.Request{Expires: after(d)} }
	newer := message.Problemf(message.NewerFormat, "x")
	bad := message.Problemf(message.BadTime, "x")
	for _, tt := range []struct {
		name    string
		lane    time.Duration
		due     time.Duration // after the message was stored
		now     time.Duration
		request message.Request
		problem *message.Problem
		want    string
	}{
		{name: "due now", want: "fire"},
		{name: "a nanosecond before", due: sec, now: sec - 1, want: "hold until 1s"},
		{name: "exactly due", due: sec, now: sec, want: "fire"},
		{name: "long past", due: sec, now: time.Hour, want: "fire"},
		{name: "at the horizon", due: 3050 * ms, want: "hold until 3.05s"},
		{name: "beyond the horizon", due: 3050*ms + 1, want: "hop into 1s"},
		{name: "shorter than a level by hopSlack", due: 5*sec - 25*ms, want: "hop into 5s"},
		{name: "shorter than a level by more than hopSlack", due: 5*sec - 25*ms - 1, want: "hop into 1s"},
		{name: "exactly a level", due: half, want: "hop into 30m"},
		{name: "longer than all", due: 1000 * time.Hour, want: "hop into 30m"},

		{name: "in the last level", lane: half, due: half, want: "hold until 30m0s"},
		{name: "in a level, due a horizon after its end", lane: half, due: half + 3*sec, want: "hold until 30m3s"},
		{name: "in a level, due later", lane: half, due: half + 3*sec + 1, want: "hold until 29m59.96s"},
		{name: "just before the hop", lane: half, due: time.Hour, now: half - 50*ms - 1, want: "hold until 29m59.96s"},
		{name: "may leave", lane: half, due: time.Hour, now: half - 50*ms, want: "hop into 30m"},
		{name: "may leave, less remains", lane: half, due: time.Hour - 76*ms, now: half - 50*ms, want: "hop into 1m"},
		{name: "due before the level's end", lane: half, due: time.Minute, want: "hold until 1m0s"},

		{name: "a retry", now: sec, request: retryAt(2 * sec), want: "hold until 2s"},
		{name: "a retry, due", now: 2 * sec, request: retryAt(2 * sec), want: "fire"},
		{name: "a retry before due", due: 3 * sec, now: 2 * sec, request: retryAt(2 * sec), want: "hold until 3s"},

		{name: "expires now", due: sec, now: 2 * sec, request: expires(2 * sec), want: "fire"},
		{name: "has expired", due: sec, now: 2*sec + 1, request: expires(2 * sec), want: "dead: expired"},
		{name: "bad", due: time.Hour, problem: bad, want: "dead: bad_time"},
		{name: "bad and expired", now: time.Hour, request: expires(0), problem: bad, want: "dead: bad_time"},
		{name: "of a newer format", now: sec, problem: newer, want: "hold until 1m1s"},
	} {
		tt.request.Due = after(tt.due)
		f := &flight{Message: lane.Message{At: after(0)}, request: tt.request, problem: tt.problem}
		p := plan{kind: plainLane{}, delay: tt.lane, Config: &config.Config{Ladder: ladder}}
		got := nextStep(p, moment{now: epoch.Add(tt.now), proven: true}, f).String()
		if got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// TestOverdueAtItsSendTime: a due message that waited for its rate is overdue from its reserved send time on, in a
// level and in a retry lane. A retry without a reserved send time is overdue from its due time on.
func TestOverdueAtItsSendTime(t *testing.T) {
	paced := message.Request{Due: after(0), RetryAt: after(2 * time.Second), Reservation: "x"}
	refused := message.Request{Due: after(0), RetryAt: after(2 * time.Second), Attempts: 1}
	pacedAfter := paced
	pacedAfter.Attempts = 1
	for _, tt := range []struct {
		name    string
		kind    laneKind
		request message.Request
		want    time.Duration
	}{
		{"paced", plainLane{}, paced, 2 * time.Second},
		{"refused, then paced", plainLane{}, pacedAfter, 2 * time.Second},
		{"refused, then paced in a retry lane", retryLane{}, pacedAfter, 2 * time.Second},
		{"refused", retryLane{}, refused, 0},
	} {
		f := &flight{Message: lane.Message{At: after(0)}, request: tt.request}
		p := plan{kind: tt.kind, Config: &config.Config{Ladder: mustLadder(t, "1s 5s")}}
		if since, ok := overdueSince(p, f, step{kind: fire}); !ok || since != epoch.Add(tt.want) {
			t.Errorf("%s: overdue since %s, %t, want since %s", tt.name, since.Sub(epoch), ok, tt.want)
		}
	}
}

// TestNothingFiresUnproven: no message fires or expires by an estimate of the leader's time.
func TestNothingFiresUnproven(t *testing.T) {
	r := message.Request{Due: after(time.Second), Expires: after(time.Minute)}
	f := &flight{Message: lane.Message{At: after(0)}, request: r}
	p := plan{kind: plainLane{}, Config: &config.Config{Ladder: mustLadder(t, "1s 5s")}}
	const want = "hold until 1s"
	for _, now := range []time.Duration{0, time.Second, time.Hour} {
		if got := nextStep(p, moment{now: epoch.Add(now)}, f).String(); got != want {
			t.Errorf("%s later: %s, want %s", now, got, want)
		}
	}
}

// TestRepeatsUnchanged: if a stream may have stored a message, the next step is to repeat the publish or to check the
// stored copy, even if the message is due or has expired.
func TestRepeatsUnchanged(t *testing.T) {
	p := plan{kind: plainLane{}, Config: &config.Config{Ladder: mustLadder(t, "1s 5s")}}
	for duplicate, want := range map[uint64]string{0: "repeat", 7: "check"} {
		f := &flight{request: message.Request{Due: after(0), Expires: after(1)}, sent: &publish{duplicate: duplicate}}
		if got := nextStep(p, moment{now: epoch.Add(time.Hour), proven: true}, f).String(); got != want {
			t.Errorf("duplicate at %d: %s, want %s", duplicate, got, want)
		}
	}
	f := &flight{problem: message.Problemf(message.UnknownKey, "x")}
	if got, want := nextStep(p, moment{}, f).String(), "await its key"; got != want {
		t.Errorf("with a seal of an unknown key: %s, want %s", got, want)
	}
}
