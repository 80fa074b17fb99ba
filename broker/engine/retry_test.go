package engine

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"delaybroker/broker/acks"
	"delaybroker/broker/config"
	"delaybroker/broker/deliver"
	"delaybroker/broker/jsapi"
	"delaybroker/broker/lane"
	"delaybroker/broker/message"
)

// TestReasonOfSilence: the third consecutive silence is a refusal, whose reason is the cause of the silence.
func TestReasonOfSilence(t *testing.T) {
	silence := deliver.Result{Outcome: deliver.Unknown, Err: acks.ErrTimeout, Reason: "nobody spoke"}
	want := deliver.Result{Outcome: deliver.Refused, Reason: "nobody spoke (3 times in a row)"}
	if got := judgeSilence(&flight{silences: silentTries - 1}, silence); got != silence {
		t.Errorf("before the third: got %+v, want %+v", got, silence)
	}
	if got := judgeSilence(&flight{silences: silentTries}, silence); got != want {
		t.Errorf("the third: got %+v, want %+v", got, want)
	}
}

// TestAfterDelivery checks the next step of a message for each outcome of its delivery.
func TestAfterDelivery(t *testing.T) {
	p := plan{kind: plainLane{}, Config: &config.Config{RetryLadder: mustLadder(t, "1s 5s 30s"), Attempts: 5}}
	refused := deliver.Result{Outcome: deliver.Refused, Reason: "full"}
	ended := func(o deliver.Outcome) deliver.Result { return deliver.Result{Outcome: o} }
	failed := func(err error) deliver.Result { return deliver.Result{Outcome: deliver.Unknown, Err: err} }
	silence := failed(acks.ErrTimeout)
	stalled := ended(deliver.Stalled)
	paced := deliver.Result{Outcome: deliver.Paced, Turn: "x"}
	tooLarge := deliver.Result{Outcome: deliver.Refused, Code: jsapi.CodeTooLarge}
	for _, tt := range []struct {
		name     string
		result   deliver.Result
		wait     time.Duration
		attempts int // maximum attempts; zero for five
		failed   int // number of earlier attempts
		silent   int // number of silences, including this one
		expires  time.Duration
		want     string
	}{
		{name: "delivered", result: ended(deliver.Delivered), want: "arrive"},
		{name: "silent", result: silence, silent: 1, want: "back off until 50ms"},
		{name: "silent for the third time", result: silence, silent: silentTries, want: "retry in 1s at 1s after 1"},
		{name: "disconnected", result: failed(acks.ErrDisconnected), silent: 9, want: "hold until 0s"},
		{name: "busy", result: failed(errors.New("busy")), silent: 9, want: "back off until 50ms"},
		{name: "paced", result: paced, wait: time.Minute, want: "pace until 1m0s of x"},
		{name: "expired while it waited", result: ended(deliver.Expired), want: "dead: expired"},
		{name: "no room", result: ended(deliver.NoRoom), failed: 2, want: "retry in 30s at 30s after 2"},
		{name: "stalled", result: stalled, wait: 7 * time.Second, failed: 2, want: "retry in 5s at 7s after 2"},
		{name: "stalled for a moment", result: stalled, wait: time.Millisecond, want: "retry in 1s at 1ms after 0"},
		{name: "too large for its target", result: tooLarge, want: "dead: too_large"},

		{name: "refused for the first time", result: refused, want: "retry in 1s at 1s after 1"},
		{name: "refused for the second time", result: refused, failed: 1, want: "retry in 5s at 5s after 2"},
		{name: "the last wait", result: refused, failed: 2, want: "retry in 30s at 30s after 3"},
		{name: "the last wait again", result: refused, failed: 3, want: "retry in 30s at 30s after 4"},
		{name: "the last attempt", result: refused, failed: 4, want: "dead: undelivered after 5"},
		{name: "after the last attempt", result: refused, failed: 7, want: "dead: undelivered after 8"},
		{name: "one attempt only", result: refused, attempts: 1, want: "dead: undelivered after 1"},
		{name: "just before it expires", result: refused, expires: time.Second, want: "retry in 1s at 1s after 1"},
		{name: "just after it expires", result: refused, expires: time.Second - 1, want: "dead: expired after 1"},
	} {
		settings := *p.Config
		settings.Attempts = cmp.Or(tt.attempts, p.Attempts)
		p := plan{kind: p.kind, Config: &settings}
		f := &flight{request: message.Request{Due: after(-time.Second), Attempts: tt.failed}, silences: tt.silent}
		if tt.expires > 0 {
			f.request.Expires = after(tt.expires)
		}
		if got := afterDelivery(p, moment{now: epoch}, f, judgeSilence(f, tt.result), tt.wait).String(); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// TestExpiredReason: the dead letter of a message that expired while it waited has the deliverer's reason, if there is
// one.
func TestExpiredReason(t *testing.T) {
	for reason, want := range map[string]string{
		"the rate had no free turn": "the rate had no free turn before Delay-Expires ",
		"":                          "it was not delivered before Delay-Expires ",
	} {
		f := &flight{request: message.Request{Target: "orders.x", Expires: after(0)}}
		r := deliver.Result{Outcome: deliver.Expired, Reason: reason}
		if got := afterDelivery(plan{}, moment{now: epoch}, f, r, 0).problem.Sentence; !strings.HasPrefix(got, want) {
			t.Errorf("%q: %q, want %q and the time", reason, got, want)
		}
	}
}

// TestRetryJitter: the jitter of a wait is deterministic, differs between messages and attempts, and is spread over the
// range of the setting.
func TestRetryJitter(t *testing.T) {
	p := plan{Config: &config.Config{RetryJitter: config.RetryJitter{{Pattern: "shop.*", Value: 20}}}}
	tenths := make(map[time.Duration]int)
	seen := make(map[time.Duration]bool)
	for i := range 1000 {
		r := message.Request{ID: fmt.Sprintf("DELAY_30m-%d-1732060800000000000", i), Target: "shop.mail"}
		for failed := range 2 {
			d := p.jitter(r, failed, 100*time.Second)
			if d != p.jitter(r, failed, 100*time.Second) || d < 0 || d >= 20*time.Second || d%time.Millisecond != 0 {
				t.Fatalf("jitter %s of %s, want the same whole milliseconds below 20s each time", d, r.ID)
			}
			tenths[d/(2*time.Second)]++
			seen[d] = true
		}
		if d := p.jitter(message.Request{ID: r.ID, Target: "other"}, 1, time.Hour); d != 0 {
			t.Fatalf("jitter %s for a target without a rule", d)
		}
	}
	for at := range time.Duration(10) {
		if n := tenths[at]; n < 140 || n > 260 {
			t.Errorf("%d of 2000 in tenth %d, want about 200", n, at)
		}
	}
	if len(seen) < 1800 {
		t.Errorf("%d distinct jitters of 2000, want nearly all", len(seen))
	}
}

// TestJitterLetsNothingExpire: a wait has no jitter if only the jitter would make it end after Delay-Expires.
func TestJitterLetsNothingExpire(t *testing.T) {
	p := plan{Config: &config.Config{
		Attempts: 3, RetryLadder: mustLadder(t, "100s"), RetryJitter: config.RetryJitter{{Pattern: ">", Value: 20}},
	}}
	for i := range 20 {
		f := &flight{request: message.Request{
			ID: fmt.Sprintf("DELAY_30m-%d-1732060800000000000", i+1), Target: "shop.mail",
			Due: epoch.Stamp(), Expires: epoch.Stamp().Add(100 * time.Second),
		}}
		s := refusedByTarget(p, moment{now: epoch}, f, "full")
		if want := epoch.Stamp().Add(100 * time.Second); s.kind != retry || !s.request.RetryAt.Equal(want) {
			t.Fatalf("%s: %s, want the next attempt at %s", f.request.ID, s, want)
		}
	}
}

// TestPolicyByTarget: the first matching rules determine the maximum attempts of a target, and its retry waits. A
// client may request fewer attempts. Waits without a refusal do not follow the rules.
func TestPolicyByTarget(t *testing.T) {
	p := plan{kind: plainLane{}, Config: &config.Config{
		RetryLadder: mustLadder(t, "1s 5s 30s"), Attempts: 4,
		RetryRules: config.RetryWaits{
			{Pattern: "shop.mail", Value: mustLadder(t, "2s 10m")},
			{Pattern: "shop.>", Value: mustLadder(t, "7s")},
		},
		AttemptRules: config.RetryLimits{{Pattern: "shop.*", Value: 3}, {Pattern: "shop.mail", Value: 9}},
	}}
	refused := deliver.Result{Outcome: deliver.Refused, Reason: "full"}
	for _, tt := range []struct {
		target string
		limit  int // the client's maximum attempts
		failed int
		result deliver.Result
		want   string
	}{
		{"shop.mail", 0, 0, refused, "retry in 2s at 2s after 1"},
		{"shop.mail", 0, 1, refused, "retry in 10m at 10m0s after 2"},
		{"shop.mail", 0, 2, refused, "dead: undelivered after 3"},
		{"shop.mail", 2, 1, refused, "dead: undelivered after 2"},
		{"shop.mail", 1, 0, refused, "dead: undelivered after 1"},
		{"shop.mail", 9, 2, refused, "dead: undelivered after 3"}, // the client requested more than the rule permits
		{"shop.a", 0, 1, refused, "retry in 7s at 7s after 2"},
		{"shop.a.b", 0, 2, refused, "retry in 7s at 7s after 3"},
		{"orders", 0, 2, refused, "retry in 30s at 30s after 3"},
		{"orders", 0, 3, refused, "dead: undelivered after 4"},
		{"shop.mail", 0, 0, deliver.Result{Outcome: deliver.NoRoom}, "retry in 30s at 30s after 0"},
	} {
		f := &flight{request: message.Request{Target: tt.target, Due: after(0), Attempts: tt.failed, MaxAttempts: tt.limit}}
		s := afterDelivery(p, moment{now: epoch}, f, tt.result, 0)
		if got := s.String(); got != tt.want {
			t.Errorf("%s, client maximum %d, %d failed: %s, want %s", tt.target, tt.limit, tt.failed, got, tt.want)
		}
	}
}

// TestRefusalsAreLogged: each refusal by a target, including the last one, is logged with the target, the reason and
// the attempt, rate-limited by target. The dead letter is logged, too. The message carries the reason of the refusal
// or, if it was not refused, the reason of its wait.
func TestRefusalsAreLogged(t *testing.T) {
	p := plan{kind: plainLane{}, Config: &config.Config{RetryLadder: mustLadder(t, "1s 5s"), Attempts: 2}}
	refused := deliver.Result{Outcome: deliver.Refused, Reason: "no\nstock"}
	for failed, kind := range []stepKind{retry, dead} {
		f := &flight{request: message.Request{Target: "shop.mail", Due: after(0), Attempts: failed}}
		s := afterDelivery(p, moment{now: epoch}, f, refused, 0)
		if s.kind != kind || s.logKey != "shop.mail" || s.line == nil {
			t.Fatalf("refusal %d: %v, about %q, note %v", failed+1, s, s.logKey, s.line)
		}
		want := fmt.Sprintf("WARN target refuses [target shop.mail reason no stock attempt %d of 2]", failed+1)
		if got := fmt.Sprint(s.line.level, " ", s.line.text, " ", s.line.args); got != want {
			t.Errorf("the log has %q, want %q", got, want)
		}
		if s.request.LastError != "no stock" || s.request.AllowedRefusals != 2 {
			t.Errorf("the message carries %q of %d", s.request.LastError, s.request.AllowedRefusals)
		}
	}
	f := &flight{request: message.Request{Target: "shop.mail", ID: "X-1-1"}}
	letter := publish{kind: dead, problem: message.Problemf(message.Undelivered, "refused")}
	stored := storeAnswer{Reply: jsapi.Reply{Ack: jsapi.Ack{Stream: "X", Sequence: 1}}}
	s := afterStore(p, moment{now: epoch}, f, &letter, stored)
	if got, want := fmt.Sprint(s.line.args), "[code undelivered target shop.mail id X-1-1 reason refused]"; got != want {
		t.Errorf("the log of a dead letter has %s, want %s", got, want)
	}
	for outcome, want := range map[deliver.Outcome]string{
		deliver.Stalled: stalledReason, deliver.NoRoom: "JetStream has no room: insufficient resources (10023)",
	} {
		f := &flight{request: message.Request{Target: "shop.mail", Due: after(0), Attempts: 1, LastError: "no stock"}}
		r := deliver.Result{Outcome: outcome, Reason: "insufficient resources (10023)"}
		s := afterDelivery(p, moment{now: epoch}, f, r, time.Second)
		got := *s.request
		if got.DeferralReason != want || got.Attempts != 1 || got.LastError != "no stock" || got.AllowedRefusals != 2 ||
			s.logKey != "" {
			t.Errorf("%s: the message carries %+v, logged about %q", outcome, got, s.logKey)
		}
	}
	f = &flight{request: message.Request{DeferralReason: stalledReason, LastError: "no stock"}}
	s = afterDelivery(p, moment{now: epoch}, f, deliver.Result{Outcome: deliver.Paced, Turn: "x"}, time.Second)
	if s.request.DeferralReason != "" || s.request.LastError != "no stock" {
		t.Errorf("with a reserved send time: %+v", *s.request)
	}
}

// TestExpiredSaysTheLastReason: the dead letter of an expired message has the reason of the last refusal.
func TestExpiredSaysTheLastReason(t *testing.T) {
	f := &flight{
		Message: lane.Message{At: after(0)},
		request: message.Request{Due: after(0), Expires: after(time.Second), Attempts: 3, LastError: "no stock"},
	}
	p := plan{kind: plainLane{}, Config: &config.Config{Ladder: mustLadder(t, "1s")}}
	s := nextStep(p, moment{now: epoch.Add(time.Minute), proven: true}, f)
	const want = "refused 3 times, and not delivered before Delay-Expires 2026-11-20T10:00:01Z; last error: no stock"
	if s.kind != dead || s.problem.Sentence != want {
		t.Errorf("got %v: %q, want %q", s, s.problem.Sentence, want)
	}
}
