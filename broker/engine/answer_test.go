package engine

import (
	"testing"
	"time"

	"delaybroker/broker/acks"
	"delaybroker/broker/config"
	"delaybroker/broker/jsapi"
	"delaybroker/broker/lane"
	"delaybroker/broker/message"
)

// TestAfterStore checks the next step of a message after the answer of a stream of the broker, or its timeout.
func TestAfterStore(t *testing.T) {
	p := plan{kind: plainLane{}, Config: &config.Config{
		Ladder: mustLadder(t, "1s 5s 1m"), RetryLadder: mustLadder(t, "1s 5s"), Attempts: 5,
	}}
	no := func(code int) storeAnswer { return storeAnswer{Reply: jsapi.Reply{Ack: jsapi.Ack{Code: code}}} }
	const full = 10077 // the stream's own limit
	hopTo := func(level string) publish {
		l, _ := p.Ladder.Lookup(level)
		return publish{kind: hop, level: l, request: &message.Request{}}
	}
	to5s, to1s, toRetry := hopTo("5s"), hopTo("1s"), publish{kind: retry, request: &message.Request{Attempts: 1}}
	deferred := publish{kind: retry, request: &message.Request{}}
	silence := storeAnswer{Reply: jsapi.Reply{Err: acks.ErrTimeout}}
	offline := storeAnswer{Reply: jsapi.Reply{Err: acks.ErrDisconnected}}
	stored := storeAnswer{Reply: jsapi.Reply{Ack: jsapi.Ack{Stream: "X", Sequence: 1}}}
	found := storeAnswer{Reply: jsapi.Reply{Ack: jsapi.Ack{Stream: "X", Sequence: 1, Duplicate: true}}}
	expired := publish{kind: dead, request: &message.Request{}, problem: message.Problemf(message.Expired, "x")}
	due := func(d time.Duration) message.Request { return message.Request{Due: after(d)} }
	paced := message.Request{Reservation: "x", RetryAt: after(20 * time.Second)}
	for _, tt := range []struct {
		name    string
		sent    publish
		request message.Request // due in ten seconds unless it has a due time
		tries   int
		answer  storeAnswer
		want    string
	}{
		{name: "stored", sent: to5s, answer: stored, want: "arrive"},
		{name: "reported as a duplicate", sent: to5s, answer: found, want: "check"},
		{name: "no answer", sent: to5s, answer: silence, want: "back off until 50ms"},
		{name: "no answer seven times", sent: to5s, tries: 6, answer: silence, want: "back off until 3.2s"},
		{name: "no answer, many in memory", sent: to5s, tries: 7, answer: silence, want: "back off until 9s"},
		{name: "no answer, due", sent: to5s, tries: 6, request: due(time.Second), answer: silence, want: "back off until 1s"},
		{name: "disconnected", sent: to5s, answer: offline, want: "hold until 0s"},
		{name: "the first copy is being stored", sent: to5s, answer: no(jsapi.CodeInFlight), want: "back off until 50ms"},
		{name: "the stream is busy", sent: to5s, answer: no(jsapi.CodeTooMany), want: "back off until 50ms"},

		{name: "a level is full", sent: to5s, answer: no(full), want: "hop into 1s"},
		{name: "the smallest level is full", sent: to1s, answer: no(full), want: "back off until 50ms"},
		{name: "a level is full, due", sent: to5s, request: due(0), answer: no(full), want: "hold until 0s"},
		{name: "too large for levels", sent: to5s, answer: no(jsapi.CodeTooLarge), want: "dead: too_large"},
		{name: "too large to be paced", sent: to5s, request: paced, answer: no(jsapi.CodeTooLarge), want: "hold until 20s"},

		{name: "a retry lane is full", sent: toRetry, answer: no(full), want: "back off until 50ms"},
		{name: "too large for a retry lane", sent: toRetry, answer: no(jsapi.CodeTooLarge), want: "dead: too_large after 1"},
		{name: "too large to be deferred", sent: deferred, answer: no(jsapi.CodeTooLarge), want: "back off until 50ms"},

		{name: "no room for a dead letter", sent: expired, answer: no(full), want: "back off until 50ms"},
	} {
		f := &flight{Message: lane.Message{At: after(0)}, request: tt.request, tries: tt.tries}
		if f.request.Due.IsZero() {
			f.request.Due = after(10 * time.Second)
		}
		if tt.answer.Outcome().NotStored() && tt.sent.kind == hop {
			f.refusedBy = tt.sent.level.Name
		}
		m := moment{now: epoch, inMemory: 9000}
		if got := afterStore(p, m, f, &tt.sent, tt.answer).String(); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// TestBackOffTime: the backoff grows with the tries and with the messages in memory, up to half a minute: after an
// outage, no message waits longer for the next try.
func TestBackOffTime(t *testing.T) {
	for _, tt := range []struct {
		tries, inMemory int
		want            time.Duration
	}{
		{0, 65_536, 50 * time.Millisecond}, {6, 65_536, 3200 * time.Millisecond}, {7, 1, 3200 * time.Millisecond},
		{7, 9000, 9 * time.Second}, {7, 65_536, 30 * time.Second}, {1000, 65_536, 30 * time.Second},
	} {
		if got := backOffTime(tt.tries, tt.inMemory); got != tt.want {
			t.Errorf("%d tries, %d in memory: %s, want %s", tt.tries, tt.inMemory, got, tt.want)
		}
	}
}

// TestAfterCheck: a copy counts only if a broker wrote it. After a failed read of the copy, the worker backs off.
func TestAfterCheck(t *testing.T) {
	f := &flight{request: message.Request{Due: after(time.Second)}}
	for _, tt := range []struct {
		ours bool
		err  error
		want string
	}{{true, nil, "arrive"}, {false, nil, "renew"}, {false, acks.ErrTimeout, "back off until 50ms"}} {
		if got := afterCheck(moment{now: epoch}, f, tt.ours, tt.err).String(); got != tt.want {
			t.Errorf("ours %v, %v: %s, want %s", tt.ours, tt.err, got, tt.want)
		}
	}
}
