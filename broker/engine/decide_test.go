package engine

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"delaybroker/broker/acks"
	"delaybroker/broker/config"
	"delaybroker/broker/deliver"
	"delaybroker/broker/jsapi"
	"delaybroker/broker/lane"
	"delaybroker/broker/leader"
	"delaybroker/broker/message"
	"delaybroker/broker/streams"
	"delaybroker/levels"
)

func mustLadder(t *testing.T, spec string) levels.Ladder {
	t.Helper()
	l, err := levels.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (s step) String() string {
	switch s.kind {
	case hold:
		return "hold until " + s.at.Sub(epoch).String()
	case backOff:
		return "back off until " + s.at.Sub(epoch).String()
	case pace:
		return "wait for a turn at " + leader.At(s.as.RetryAt).Sub(epoch).String() + " of " + s.as.Paced
	case hop:
		return "hop into " + s.level.Name
	case retry:
		return fmt.Sprintf("retry in %s at %s after %d", s.level.Name, leader.At(s.as.RetryAt).Sub(epoch), s.as.Attempts)
	case dead:
		if s.as != nil {
			return fmt.Sprintf("dead: %s after %d", s.why.Code, s.as.Attempts)
		}
		return "dead: " + string(s.why.Code)
	}
	return map[stepKind]string{
		awaitKey: "await its key", repeat: "repeat", check: "check", renew: "renew", fire: "fire", arrive: "arrive",
		examine: "examine", claim: "claim", claimed: "claimed", remove: "remove",
	}[s.kind]
}

// epoch is when the message of a test was stored.
var epoch = leader.At(time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC))

// after is the given time after that, as a message carries it.
func after(d time.Duration) time.Time { return epoch.Add(d).Stamp() }

// TestDecide is the intake and a level at their exact edges. The horizon of this ladder is 3 s, and 50 ms more.
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
		{name: "less than the slack short of a level", due: 5*sec - 25*ms, want: "hop into 5s"},
		{name: "more than the slack short of a level", due: 5*sec - 25*ms - 1, want: "hop into 1s"},
		{name: "exactly a level", due: half, want: "hop into 30m"},
		{name: "longer than all", due: 1000 * time.Hour, want: "hop into 30m"},

		{name: "in a level, it is its last", lane: half, due: half, want: "hold until 30m0s"},
		{name: "in a level, due a horizon after", lane: half, due: half + 3*sec, want: "hold until 30m3s"},
		{name: "in a level, due more than that", lane: half, due: half + 3*sec + 1, want: "hold until 29m59.96s"},
		{name: "just before it may leave", lane: half, due: time.Hour, now: half - 50*ms - 1, want: "hold until 29m59.96s"},
		{name: "when it may leave", lane: half, due: time.Hour, now: half - 50*ms, want: "hop into 30m"},
		{name: "when it may leave, less remains", lane: half, due: time.Hour - 76*ms, now: half - 50*ms, want: "hop into 1m"},
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
		f := &flight{Stored: lane.Stored{At: after(0)}, request: tt.request, problem: tt.problem}
		p := plan{kind: plainLane{}, delay: tt.lane, ladder: ladder}
		got := next(p, moment{now: epoch.Add(tt.now), proven: true}, f).String()
		if got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// TestNothingFiresUnproven: an estimate of the leader's time is only good for planning. Nothing fires by it, and
// nothing expires.
func TestNothingFiresUnproven(t *testing.T) {
	r := message.Request{Due: after(time.Second), Expires: after(time.Minute)}
	f := &flight{Stored: lane.Stored{At: after(0)}, request: r}
	p := plan{kind: plainLane{}, ladder: mustLadder(t, "1s 5s")}
	const want = "hold until 1s"
	for _, now := range []time.Duration{0, time.Second, time.Hour} {
		if got := next(p, moment{now: epoch.Add(now)}, f).String(); got != want {
			t.Errorf("%s later: %s, want %s", now, got, want)
		}
	}
}

// TestSpill: a message that is far from due does not stay in a crowded intake.
func TestSpill(t *testing.T) {
	p := plan{kind: plainLane{}, ladder: mustLadder(t, "1s 5s 1m")}
	for _, tt := range []struct {
		name    string
		delay   time.Duration // of the lane
		due     time.Duration
		refused string
		want    string
	}{
		{name: "near", due: near - 1, want: "hold until 249.999999ms"},
		{name: "not near", due: near, want: "hop into 1s"},
		{name: "the longest level that fits", due: 3 * time.Second, want: "hop into 1s"},
		{name: "none smaller to try", due: 3 * time.Second, refused: "1s", want: "hop into 1s"},
		{name: "in a level", delay: time.Minute, due: 61 * time.Second, want: "hold until 1m1s"},
	} {
		f := &flight{Stored: lane.Stored{At: after(0)}, request: message.Request{Due: after(tt.due)}, refused: tt.refused}
		p := p
		p.delay = tt.delay
		if got := next(p, moment{now: epoch, proven: true, crowded: true}, f).String(); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
	long := plan{kind: plainLane{}, ladder: mustLadder(t, "10s 1m")} // it would not be read at once
	f := &flight{Stored: lane.Stored{At: after(0)}, request: message.Request{Due: after(3 * time.Second)}}
	if got, want := next(long, moment{now: epoch, crowded: true}, f).String(), "hold until 3s"; got != want {
		t.Errorf("with no level that is read at once: %s, want %s", got, want)
	}
}

// TestStores counts how often a message is stored before its target has it: once in the lane that accepts it, and once
// for each hop. A message that is due beyond the horizon passes a level however much memory is free, and a crowded
// intake adds no further level.
func TestStores(t *testing.T) {
	p := plan{kind: plainLane{}, ladder: levels.Default()}
	for _, tt := range []struct {
		due           time.Duration
		free, crowded int
	}{
		{due: near - 1, free: 1, crowded: 1},
		{due: time.Second, free: 1, crowded: 2},
		{due: 3 * time.Second, free: 1, crowded: 2},
		{due: 8 * time.Second, free: 2, crowded: 2}, // 7s, and the rest on the wheel of that level
		{due: 10 * time.Second, free: 2, crowded: 2},
		{due: 14 * time.Second, free: 3, crowded: 3}, // 10s 3s
	} {
		for _, m := range []moment{{proven: true}, {proven: true, crowded: true}} {
			got, want := stores(t, p, m, tt.due), tt.free
			if m.crowded {
				want = tt.crowded
			}
			if got != want {
				t.Errorf("due in %s, crowded %t: stored %d times, want %d", tt.due, m.crowded, got, want)
			}
		}
	}
}

// stores plays the walk of a message from the intake to its firing.
func stores(t *testing.T, p plan, m moment, due time.Duration) (stored int) {
	t.Helper()
	m.now = epoch
	f := &flight{Stored: lane.Stored{At: after(0)}, request: message.Request{Due: after(due)}}
	stored = 1
	for range 20 {
		switch s := next(p, m, f); s.kind {
		case fire:
			return stored
		case hold:
			m.now = s.at
		case hop:
			stored++
			f.At, p.delay = m.now.Stamp(), s.level.Delay
		default:
			t.Fatalf("due in %s: unexpected step: %s", due, s)
		}
	}
	t.Fatalf("due in %s: it circles", due)
	return 0
}

// TestSpillAllocatesNothing: while memory is short, the levels are searched for each message, and never copied.
func TestSpillAllocatesNothing(t *testing.T) {
	p := plan{kind: plainLane{}, ladder: levels.Default(), retries: levels.Default()}
	far := &flight{Stored: lane.Stored{At: after(0)}, request: message.Request{Due: after(4 * time.Hour)}}
	crowded := moment{now: epoch, proven: true, crowded: true}
	if n := testing.AllocsPerRun(100, func() { holdOrSpill(p, crowded, far, far.when()) }); n != 0 {
		t.Errorf("to store a message in a level instead of memory allocates %.0f times", n)
	}
	const request = 1 // the message's request in the retry lane
	if n := testing.AllocsPerRun(100, func() { deferred(p, crowded, far, time.Hour, stalled) }); n > request {
		t.Errorf("to put off a message allocates %.0f times, want %d", n, request)
	}
}

// TestRepeatsUnchanged: for a message that a stream may have already, no other step is decided, although it is due or
// has expired by now.
func TestRepeatsUnchanged(t *testing.T) {
	p := plan{kind: plainLane{}, ladder: mustLadder(t, "1s 5s")}
	for found, want := range map[uint64]string{0: "repeat", 7: "check"} {
		f := &flight{request: message.Request{Due: after(0), Expires: after(1)}, sent: &publish{found: found}}
		if got := next(p, moment{now: epoch.Add(time.Hour), proven: true}, f).String(); got != want {
			t.Errorf("found at %d: %s, want %s", found, got, want)
		}
	}
	f := &flight{problem: message.Problemf(message.UnknownKey, "x")}
	if got, want := next(p, moment{}, f).String(), "await its key"; got != want {
		t.Errorf("with a seal of an unknown key: %s, want %s", got, want)
	}
}

// TestAfterStore is the next step of a message when one of our streams has answered, or has not.
func TestAfterStore(t *testing.T) {
	p := plan{kind: plainLane{}, ladder: mustLadder(t, "1s 5s 1m"), retries: mustLadder(t, "1s 5s"), attempts: 5}
	no := func(code int) storeAnswer { return storeAnswer{ack: jsapi.Ack{Code: code}} }
	const full = 10077 // the stream's own limit
	hopTo := func(level string) publish {
		l, _ := p.ladder.Lookup(level)
		return publish{kind: hop, level: l, as: &message.Request{}}
	}
	to5s, to1s, toRetry := hopTo("5s"), hopTo("1s"), publish{kind: retry, as: &message.Request{Attempts: 1}}
	deferred := publish{kind: retry, as: &message.Request{}}
	silence := storeAnswer{err: acks.ErrTimeout}
	stored := storeAnswer{ack: jsapi.Ack{Stream: "X", Sequence: 1}}
	found := storeAnswer{ack: jsapi.Ack{Stream: "X", Sequence: 1, Duplicate: true}}
	expired := publish{kind: dead, as: &message.Request{}, why: message.Problemf(message.Expired, "x")}
	due := func(d time.Duration) message.Request { return message.Request{Due: after(d)} }
	paced := message.Request{Paced: "x", RetryAt: after(20 * time.Second)}
	for _, tt := range []struct {
		name    string
		sent    publish
		request message.Request // due in ten seconds
		tries   int
		answer  storeAnswer
		want    string
	}{
		{name: "stored", sent: to5s, answer: stored, want: "arrive"},
		{name: "it says it has it", sent: to5s, answer: found, want: "check"},
		{name: "no answer", sent: to5s, answer: silence, want: "back off until 50ms"},
		{name: "no answer again and again", sent: to5s, tries: 6, answer: silence, want: "back off until 3.2s"},
		{name: "no answer to one of many", sent: to5s, tries: 7, answer: silence, want: "back off until 9s"},
		{name: "silent, due", sent: to5s, tries: 6, request: due(time.Second), answer: silence, want: "back off until 1s"},
		{name: "disconnected", sent: to5s, answer: storeAnswer{err: acks.ErrDisconnected}, want: "hold until 0s"},
		{name: "the first copy is being stored", sent: to5s, answer: no(jsapi.CodeInFlight), want: "back off until 50ms"},
		{name: "the stream is busy", sent: to5s, answer: no(jsapi.CodeTooMany), want: "back off until 50ms"},

		{name: "a level is full", sent: to5s, answer: no(full), want: "hop into 1s"},
		{name: "the smallest level is full", sent: to1s, answer: no(full), want: "back off until 50ms"},
		{name: "a level is full, and it is due", sent: to5s, request: due(0), answer: no(full), want: "hold until 0s"},
		{name: "too large for levels", sent: to5s, answer: no(jsapi.CodeTooLarge), want: "dead: too_large"},
		{name: "too large to be paced", sent: to5s, request: paced, answer: no(jsapi.CodeTooLarge), want: "hold until 20s"},

		{name: "a retry lane is full", sent: toRetry, answer: no(full), want: "back off until 50ms"},
		{name: "too large for a retry lane", sent: toRetry, answer: no(jsapi.CodeTooLarge), want: "dead: too_large after 1"},
		{name: "too large to be deferred", sent: deferred, answer: no(jsapi.CodeTooLarge), want: "back off until 50ms"},

		{name: "no room for a dead letter", sent: expired, answer: no(full), want: "back off until 50ms"},
	} {
		f := &flight{Stored: lane.Stored{At: after(0)}, request: tt.request, tries: tt.tries}
		if f.request.Due.IsZero() {
			f.request.Due = after(10 * time.Second)
		}
		if tt.answer.refusal() && tt.sent.kind == hop {
			f.refused = tt.sent.level.Name
		}
		m := moment{now: epoch, inFlight: 9000}
		if got := afterStore(p, m, f, &tt.sent, tt.answer).String(); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// TestAfterCheck: only a copy of ours counts, and a question that was not answered is asked again.
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

// TestReasonOfSilence: the third silence in a row is a refusal, whose reason is what the silence means.
func TestReasonOfSilence(t *testing.T) {
	silence := deliver.Result{Outcome: deliver.Unknown, Err: acks.ErrTimeout, Reason: "nobody spoke"}
	want := deliver.Result{Outcome: deliver.Refused, Reason: "nobody spoke (3 times in a row)"}
	if got := judgeSilence(&flight{silent: silentTries - 1}, silence); got != silence {
		t.Errorf("before the third: got %+v, want %+v", got, silence)
	}
	if got := judgeSilence(&flight{silent: silentTries}, silence); got != want {
		t.Errorf("the third: got %+v, want %+v", got, want)
	}
}

// TestAfterDelivery is the next step of a message for each way in which its delivery can end.
func TestAfterDelivery(t *testing.T) {
	p := plan{kind: plainLane{}, retries: mustLadder(t, "1s 5s 30s"), attempts: 5}
	refused := deliver.Result{Outcome: deliver.Refused, Reason: "full"}
	ended := func(o deliver.Outcome) deliver.Result { return deliver.Result{Outcome: o} }
	failed := func(err error) deliver.Result { return deliver.Result{Outcome: deliver.Unknown, Err: err} }
	silence := failed(acks.ErrTimeout)
	stalled := ended(deliver.Stalled)
	paced := deliver.Result{Outcome: deliver.Paced, Paced: "x"}
	tooLarge := deliver.Result{Outcome: deliver.Refused, Code: jsapi.CodeTooLarge}
	for _, tt := range []struct {
		name     string
		result   deliver.Result
		turn     time.Duration
		attempts int // allowed; zero for five
		failed   int // attempts before
		silent   int // times, with this one
		expires  time.Duration
		want     string
	}{
		{name: "delivered", result: ended(deliver.Delivered), want: "arrive"},
		{name: "silent", result: silence, silent: 1, want: "back off until 50ms"},
		{name: "silent for the third time", result: silence, silent: silentTries, want: "retry in 1s at 1s after 1"},
		{name: "disconnected", result: failed(acks.ErrDisconnected), silent: 9, want: "hold until 0s"},
		{name: "busy", result: failed(errors.New("busy")), silent: 9, want: "back off until 50ms"},
		{name: "paced", result: paced, turn: time.Minute, want: "wait for a turn at 1m0s of x"},
		{name: "expired while it waited", result: ended(deliver.Expired), want: "dead: expired"},
		{name: "no room", result: ended(deliver.NoRoom), failed: 2, want: "retry in 30s at 30s after 2"},
		{name: "stalled", result: stalled, turn: 7 * time.Second, failed: 2, want: "retry in 5s at 7s after 2"},
		{name: "stalled for a moment", result: stalled, turn: time.Millisecond, want: "retry in 1s at 1ms after 0"},
		{name: "too large for its target", result: tooLarge, want: "dead: too_large"},

		{name: "refused for the first time", result: refused, want: "retry in 1s at 1s after 1"},
		{name: "the second", result: refused, failed: 1, want: "retry in 5s at 5s after 2"},
		{name: "the last wait", result: refused, failed: 2, want: "retry in 30s at 30s after 3"},
		{name: "the last wait again", result: refused, failed: 3, want: "retry in 30s at 30s after 4"},
		{name: "the last attempt", result: refused, failed: 4, want: "dead: undelivered after 5"},
		{name: "beyond it", result: refused, failed: 7, want: "dead: undelivered after 8"},
		{name: "one attempt only", result: refused, attempts: 1, want: "dead: undelivered after 1"},
		{name: "just before it expires", result: refused, expires: time.Second, want: "retry in 1s at 1s after 1"},
		{name: "just after it expires", result: refused, expires: time.Second - 1, want: "dead: expired after 1"},
	} {
		p := p
		p.attempts = cmp.Or(tt.attempts, p.attempts)
		f := &flight{request: message.Request{Due: after(-time.Second), Attempts: tt.failed}, silent: tt.silent}
		if tt.expires > 0 {
			f.request.Expires = after(tt.expires)
		}
		if got := afterDelivery(p, moment{now: epoch}, f, judgeSilence(f, tt.result), tt.turn).String(); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// TestRetryJitter: the jitter of a wait is the same whenever it is computed, another one for another message or
// attempt, and spread over the range of the setting.
func TestRetryJitter(t *testing.T) {
	p := plan{retryJitter: config.RetryJitter{{Pattern: "shop.*", Value: 20}}}
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
		t.Errorf("%d different ones of 2000, want nearly all", len(seen))
	}
}

// TestJitterLetsNothingExpire: a wait that would end after Delay-Expires only because of its jitter has none.
func TestJitterLetsNothingExpire(t *testing.T) {
	waits, err := levels.Parse("100s")
	if err != nil {
		t.Fatal(err)
	}
	p := plan{attempts: 3, retries: waits, retryJitter: config.RetryJitter{{Pattern: ">", Value: 20}}}
	for i := range 20 {
		f := &flight{request: message.Request{
			ID: fmt.Sprintf("DELAY_30m-%d-1732060800000000000", i+1), Target: "shop.mail",
			Due: epoch.Stamp(), Expires: epoch.Stamp().Add(100 * time.Second),
		}}
		s := refusedByTarget(p, moment{now: epoch}, f, "full")
		if want := epoch.Stamp().Add(100 * time.Second); s.kind != retry || !s.as.RetryAt.Equal(want) {
			t.Fatalf("%s: %s, want the next attempt at %s", f.request.ID, s, want)
		}
	}
}

// TestPolicyByTarget: the first rule that matches says how often a target may refuse, and the waits between. A client
// may ask for fewer attempts. What was not refused waits as it always does.
func TestPolicyByTarget(t *testing.T) {
	p := plan{
		kind:    plainLane{},
		retries: mustLadder(t, "1s 5s 30s"), attempts: 4,
		retryRules: config.RetryWaits{
			{Pattern: "shop.mail", Value: mustLadder(t, "2s 10m")},
			{Pattern: "shop.>", Value: mustLadder(t, "7s")},
		},
		attemptRules: config.RetryLimits{{Pattern: "shop.*", Value: 3}, {Pattern: "shop.mail", Value: 9}},
	}
	refused := deliver.Result{Outcome: deliver.Refused, Reason: "full"}
	for _, tt := range []struct {
		target string
		asked  int // attempts
		failed int
		result deliver.Result
		want   string
	}{
		{"shop.mail", 0, 0, refused, "retry in 2s at 2s after 1"},
		{"shop.mail", 0, 1, refused, "retry in 10m at 10m0s after 2"},
		{"shop.mail", 0, 2, refused, "dead: undelivered after 3"},
		{"shop.mail", 2, 1, refused, "dead: undelivered after 2"},
		{"shop.mail", 1, 0, refused, "dead: undelivered after 1"},
		{"shop.mail", 9, 2, refused, "dead: undelivered after 3"}, // granted when more were allowed
		{"shop.a", 0, 1, refused, "retry in 7s at 7s after 2"},
		{"shop.a.b", 0, 2, refused, "retry in 7s at 7s after 3"},
		{"orders", 0, 2, refused, "retry in 30s at 30s after 3"},
		{"orders", 0, 3, refused, "dead: undelivered after 4"},
		{"shop.mail", 0, 0, deliver.Result{Outcome: deliver.NoRoom}, "retry in 30s at 30s after 0"},
	} {
		f := &flight{request: message.Request{Target: tt.target, Due: after(0), Attempts: tt.failed, MaxAttempts: tt.asked}}
		s := afterDelivery(p, moment{now: epoch}, f, tt.result, 0)
		if got := s.String(); got != tt.want {
			t.Errorf("%s, %d asked, %d before: %s, want %s", tt.target, tt.asked, tt.failed, got, tt.want)
		}
	}
}

// TestRefusalsAreSaid: each refusal by a target is a line that names it, with the reason and the attempt, told apart by
// target. The last one is, too, and so is the dead letter. What travels is the reason; a message that was not refused
// says why it waits.
func TestRefusalsAreSaid(t *testing.T) {
	p := plan{kind: plainLane{}, retries: mustLadder(t, "1s 5s"), attempts: 2}
	refused := deliver.Result{Outcome: deliver.Refused, Reason: "no\nstock"}
	for failed, kind := range []stepKind{retry, dead} {
		f := &flight{request: message.Request{Target: "shop.mail", Due: after(0), Attempts: failed}}
		s := afterDelivery(p, moment{now: epoch}, f, refused, 0)
		if s.kind != kind || s.about != "shop.mail" || s.note == nil {
			t.Fatalf("refusal %d: %v, about %q, note %v", failed+1, s, s.about, s.note)
		}
		want := fmt.Sprintf("WARN target refuses [target shop.mail reason no stock attempt %d of 2]", failed+1)
		if got := fmt.Sprint(s.note.level, " ", s.note.text, " ", s.note.args); got != want {
			t.Errorf("the log says %q, want %q", got, want)
		}
		if s.as.LastError != "no stock" || s.as.Allowed != 2 {
			t.Errorf("what travels: %q of %d", s.as.LastError, s.as.Allowed)
		}
	}
	f := &flight{request: message.Request{Target: "shop.mail", ID: "X-1-1"}}
	letter := publish{kind: dead, why: message.Problemf(message.Undelivered, "refused")}
	s := afterStore(p, moment{now: epoch}, f, &letter, storeAnswer{ack: jsapi.Ack{Stream: "X", Sequence: 1}})
	if got, want := fmt.Sprint(s.note.args), "[code undelivered target shop.mail id X-1-1 reason refused]"; got != want {
		t.Errorf("of a dead letter the log says %s, want %s", got, want)
	}
	for outcome, want := range map[deliver.Outcome]string{
		deliver.Stalled: stalled, deliver.NoRoom: "JetStream has no room: insufficient resources (10023)",
	} {
		f := &flight{request: message.Request{Target: "shop.mail", Due: after(0), Attempts: 1, LastError: "no stock"}}
		r := deliver.Result{Outcome: outcome, Reason: "insufficient resources (10023)"}
		s := afterDelivery(p, moment{now: epoch}, f, r, time.Second)
		if s.as.Deferred != want || s.as.Attempts != 1 || s.as.LastError != "no stock" || s.as.Allowed != 2 || s.about != "" {
			t.Errorf("%s: what travels is %+v, told about %q", outcome, *s.as, s.about)
		}
	}
	f = &flight{request: message.Request{Deferred: stalled, LastError: "no stock"}}
	s = afterDelivery(p, moment{now: epoch}, f, deliver.Result{Outcome: deliver.Paced, Paced: "x"}, time.Second)
	if s.as.Deferred != "" || s.as.LastError != "no stock" {
		t.Errorf("with a turn of its own: %+v", *s.as)
	}
}

// TestExpiredSaysTheLastReason: it is all that is left of the refusals.
func TestExpiredSaysTheLastReason(t *testing.T) {
	f := &flight{
		Stored:  lane.Stored{At: after(0)},
		request: message.Request{Due: after(0), Expires: after(time.Second), Attempts: 3, LastError: "no stock"},
	}
	s := next(plan{kind: plainLane{}, ladder: mustLadder(t, "1s")}, moment{now: epoch.Add(time.Minute), proven: true}, f)
	const want = "refused 3 times, and still here when Delay-Expires 2026-11-20T10:00:01Z had passed; last error: no stock"
	if s.kind != dead || s.why.Sentence != want {
		t.Errorf("got %v: %q, want %q", s, s.why.Sentence, want)
	}
}

// TestWalk takes messages through their whole life, with small latencies everywhere: none fires early, none circles,
// and none takes more hops than its ladder makes necessary.
func TestWalk(t *testing.T) {
	for _, spec := range []string{"default", "rocketmq", "short", "1s", "1s 1m 1h", "7s 11s 13s", "1d"} {
		t.Run(spec, func(t *testing.T) {
			ladder := mustLadder(t, spec)
			rng := rand.New(rand.NewPCG(5, 6))
			all := ladder.Levels()
			for range 1000 {
				first := streams.Spec{} // the intake, or straight into a level
				if rng.IntN(3) == 0 {
					l := all[rng.IntN(len(all))]
					first = streams.Spec{Name: l.Name, Delay: l.Delay}
				}
				longest := min(1000*all[len(all)-1].Delay, 366*24*time.Hour)
				if spec == "1s" {
					longest = time.Minute
				}
				wait := time.Duration(rng.Int64N(int64(longest)))
				if rng.IntN(2) == 0 { // at the edge of a sum of levels
					wait = all[rng.IntN(len(all))].Delay + all[rng.IntN(len(all))].Delay
					wait += time.Duration(rng.IntN(7)-3)*25*time.Millisecond + time.Duration(rng.IntN(3)-1)
				}
				wait = max(wait, first.Delay)
				if err := walk(ladder, first, wait, rng); err != nil {
					t.Fatalf("%s from a lane of %s: %v", wait, first.Delay, err)
				}
			}
		})
	}
}

// maxHops passes the longest level as often as it fits, and then each other level as often as it fits into the next
// longer level.
func maxHops(ladder levels.Ladder, wait time.Duration) int {
	all := ladder.Levels()
	most := int(wait/all[len(all)-1].Delay) + 2
	for i := range all[1:] {
		most += int(all[i+1].Delay/all[i].Delay) + 1
	}
	return most
}

func walk(ladder levels.Ladder, at streams.Spec, wait time.Duration, rng *rand.Rand) error {
	r := message.Request{Due: after(wait)}
	latency := func() time.Duration { return time.Duration(rng.ExpFloat64() * float64(2*time.Millisecond)) }
	most := maxHops(ladder, wait)
	stored := epoch
	now := stored.Add(latency())
	hops, holds := 0, 0
	for {
		f := &flight{Stored: lane.Stored{At: stored.Stamp()}, request: r}
		p := plan{kind: plainLane{}, delay: at.Delay, ladder: ladder}
		switch s := next(p, moment{now: now, proven: true}, f); s.kind {
		case fire:
			if now.Before(f.when()) {
				return fmt.Errorf("fires %s early", f.when().Sub(now))
			}
			if late := now.Sub(f.when()); late > 100*time.Millisecond {
				return fmt.Errorf("fires %s late after %d hops", late, hops)
			}
			if hops > most {
				return fmt.Errorf("%d hops, want at most %d", hops, most)
			}
			return nil
		case hop:
			hops, holds = hops+1, 0
			stored = now.Add(latency())
			now = stored.Add(latency())
			at = streams.Spec{Name: s.level.Name, Delay: s.level.Delay}
		case hold:
			if holds++; holds > 2 || !s.at.After(now) {
				return fmt.Errorf("held %d times in one lane, now until %s from %s", holds, s.at, now)
			}
			now = s.at
			if rng.IntN(2) == 0 {
				now = now.Add(latency())
			}
		default:
			return fmt.Errorf("step %v", s)
		}
	}
}
