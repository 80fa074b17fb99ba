package entry_test

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/message"
	"delaybroker/broker/timer/entry"
)

const timerSubject = "delaytimer.key.orders.x"

// timerEntry returns an entry of the timers' stream.
func timerEntry(subject string, sequence uint64, h message.Header) message.Incoming {
	return message.Incoming{Stream: "DELAY_TIMERS", Sequence: sequence, At: storedAt, Subject: subject, Header: h}
}

// TestSetTimer: exactly one of two headers sets the due time of a timer.
func TestSetTimer(t *testing.T) {
	for want, lines := range map[time.Duration][]string{
		0:                {"Delay-For: 0s"},
		time.Minute:      {"Delay-For: 1m"},
		2 * time.Hour:    {"delay-for: 2h", "Delay-Expires: 1h", "X-Mine: 1", "Nats-Msg-Id: 7"},
		3 * time.Hour:    {"Delay-Until: 2026-11-20T12:00:00.123456789Z"},
		-10 * time.Hour:  {"Delay-Until: 2026-11-19T23:00:00.123456789Z"},
		1500 * time.Hour: {"Delay-For: 1500h"},
	} {
		e := entry.Parse(policy, timerEntry(timerSubject, 7, header(lines...)))
		if e.Kind != entry.Set || e.Problem != nil || e.Generation != 7 {
			t.Errorf("%q: %+v", lines, e)
			continue
		}
		r := e.Pending
		if got := max(want, 0); r.Due.Sub(storedAt) != got || r.Target != "orders.x" {
			t.Errorf("%q: %+v, want due after %s", lines, r, got)
		}
	}
}

// TestBadTimers: an entry that is not a set becomes a dead letter with the cause and the generation.
func TestBadTimers(t *testing.T) {
	long := strings.Repeat("k", 129)
	for _, tt := range []struct {
		subject string
		lines   []string
		code    message.Code
		hint    string
	}{
		{timerSubject, []string{"Delay-Max-Wait: 1m"}, message.BadTimer, "neither sets"},
		{timerSubject, []string{"Delay-For: 1m", "Delay-Max-Wait: "}, message.BadTime, "Delay-Max-Wait"},
		{timerSubject, []string{"Delay-For: 1m", "Delay-Max-Wait: soon"}, message.BadTime, "Delay-Max-Wait"},
		{timerSubject, []string{"Delay-For: 0s", "Delay-Max-Wait: 0s"}, message.BadTimer, "more than zero"},
		{timerSubject, []string{"Delay-For: 1m", "Delay-Max-Wait: 59s"}, message.BadTimer, "at least Delay-For"},
		{timerSubject, []string{"Delay-For: 1m", "Delay-Max-Wait: 1m", "delay-max-wait: 2m"}, message.TimeTwice, "2 times"},
		{timerSubject, []string{"Delay-Until: 2026-11-20T12:00:00Z", "Delay-Max-Wait: 1m"}, message.BadTimer,
			"without Delay-For"},
		{timerSubject, []string{"Delay-For: 1m", "Delay-Max-Wait: 1m", "Delay-Every: 1m"}, message.BadTimer,
			"or Delay-Every"},
		{timerSubject, []string{"Delay-For: 1m", "Delay-Max-Wait: 9000d"}, message.TooFar, "DELAY_MAX_DELAY"},
		{timerSubject, nil, message.BadTimer, "Delay-For, Delay-Until, Delay-Every, Delay-Cron or Delay-Cancel"},
		{timerSubject, []string{"X-Mine: 1"}, message.BadTimer, "generation 7; the entry before it is replaced"},
		{timerSubject, []string{"Delay-For: 1.5s"}, message.BadTime, "Delay-For"},
		{timerSubject, []string{"Delay-For: "}, message.BadTime, "Delay-For"},
		{timerSubject, []string{"Delay-Until: "}, message.BadTime, "cannot be read"},
		{timerSubject, []string{"Delay-For: 1m", "Delay-For: 2m"}, message.TimeTwice, "2 times"},
		{timerSubject, []string{"Delay-For: 1m", "Delay-Until: 2026-11-20T12:00:00Z"}, message.TimeTwice, "give one"},
		{timerSubject, []string{"Delay-For: 1m", "Delay-Cancel: 1"}, message.TimeTwice, "cancels it"},
		{timerSubject, []string{"Delay-For: 367d"}, message.TooFar, "DELAY_MAX_DELAY"},
		{timerSubject, []string{"Delay-For: 1m", "Nats-TTL: 1s"}, message.BadOption, "Nats-TTL"},
		{timerSubject, []string{"Delay-For: 1m", "Delay-Fore: 1"}, message.BadOption, "Delay-Fore"},
		{timerSubject, []string{"Delay-For: 1m", "Nats-Stream: OTHER"}, message.BadInternal, "answer"},
		{timerSubject, []string{"Delay-Cancel: 1", "Nats-Sequence: 1"}, message.BadInternal, "answer"},
		{timerSubject, []string{"Delay-Fired: 3 me"}, message.BadInternal, "Delay-Fired"},
		{timerSubject, []string{"Delay-Over: 3 delivered", "Delay-Cancel: 1"}, message.BadInternal, "Delay-Over"},
		{"delaytimer." + long + ".orders.x", []string{"Delay-For: 1m"}, message.BadTimer, "129 bytes"},
		{"delaytimer._key.orders.x", []string{"Delay-For: 1m"}, message.BadTimer, "begin with _"},
		{"delaytimer.k*.orders.x", []string{"Delay-For: 1m"}, message.BadTimer, "0x2a"},
		{"delaytimer.ké.orders.x", []string{"Delay-For: 1m"}, message.BadTimer, "0xc3"},
		{"delaytimer.key.$SYS.x", []string{"Delay-For: 1m"}, message.BadTarget, "namespace"},
		{"delaytimer.key.delaytimer.key.x", []string{"Delay-For: 1m"}, message.BadTarget, "nest"},
	} {
		p := policyOf(keysOf(secretOne))
		e := entry.Parse(p, timerEntry(tt.subject, 7, header(tt.lines...)))
		wantProblem(t, tt.subject+strings.Join(tt.lines, " "), e.Problem, tt.code, tt.hint, "generation 7")
		if e.Kind != entry.Set {
			t.Errorf("%s %q is of kind %d", tt.subject, tt.lines, e.Kind)
		}
	}
	in := timerEntry("delay.1h.x", 7, header("Delay-Cancel: 1"))
	if _, problem := policy.Parse(in); problem == nil || problem.Code != message.BadOption {
		t.Errorf("Delay-Cancel on a subject without a key: got %v, want bad option", problem)
	}
}

// TestCancelEntry: a cancel in any spelling is a cancel. ValidSubject accepts no reserved key, wildcard or space.
func TestCancelEntry(t *testing.T) {
	for _, lines := range [][]string{
		{"Delay-Cancel: mine"}, {"delay-cancel: mine", "X-Other: 1"}, {"Delay-Cancel: "},
	} {
		e := entry.Parse(policy, timerEntry(timerSubject, 7, header(lines...)))
		if e.Kind != entry.Cancel || e.Problem != nil {
			t.Errorf("%q is parsed as %+v, want a cancel", lines, e)
		}
	}
	for subject, want := range map[string]bool{
		timerSubject: true, "delaytimer._.orders.x": false, "delaytimer.*.orders.x": false, "delaytimer.k.*": false,
		"delaytimer.k.orders x": false,
	} {
		if got := entry.ValidSubject(policy, subject); got != want {
			t.Errorf("ValidSubject(%q) = %t, want %t", subject, got, want)
		}
	}
}

// timerSet returns a set of timerSubject as the broker reads it, and the keys and policy of the tests below.
func timerSet() (*message.Keys, message.Policy, entry.Pending) {
	k := keysOf(secretOne)
	p := policyOf(k)
	set := entry.Parse(p, timerEntry(timerSubject, 7, header("Delay-For: 1h", "X-Mine: 1", "Delay-Expires: 5m"))).Pending
	return k, p, set
}

// firedEntry returns an entry that a broker wrote after the set, with a header and a body.
func firedEntry(t *testing.T, k *message.Keys, h message.Header) message.Incoming {
	t.Helper()
	k.SealMessage(timerSubject, h, []byte("body"))
	in := timerEntry(timerSubject, 9, wire(t, h))
	in.Data = []byte("body")
	return in
}

// TestMarkerHops: the marker of a timer has the request after several hops, without the body.
func TestMarkerHops(t *testing.T) {
	k, p, set := timerSet()
	first := entry.Marker{Request: set.Request, Key: "key", Size: 42}
	marker := markerOf(t, k, first, "2h")
	got, problem := entry.ParseMarker(p, marker)
	if problem != nil || got.Key != "key" || got.Size != 42 || got.Timer(p.Names) != timerSubject ||
		got.Target != "orders.x" || got.Due != set.Due || got.ID != set.ID || got.Hop != 1 || got.User != nil {
		t.Errorf("the marker is parsed as %+v, %v", got, problem)
	}
	if id := marker.Header["Nats-Msg-Id"]; slices.Equal(id, set.HopHeader()["Nats-Msg-Id"]) {
		t.Errorf("the marker has the id %q, as the fired message: the stream would drop the second one as a duplicate", id)
	}
	again, problem := entry.ParseMarker(p, markerOf(t, k, got, "1h"))
	if got.Hop++; problem != nil || again.Hop != got.Hop || again.Key != got.Key || again.Size != got.Size {
		t.Errorf("after another hop, the marker is parsed as %+v, %v", again, problem)
	}
	if _, problem := p.Parse(marker); problem == nil {
		t.Error("a marker is parsed as a message: an empty message would be delivered")
	}
}

// TestFiring: a firing contains the message, and an outcome does not.
func TestFiring(t *testing.T) {
	k, p, set := timerSet()
	in := firedEntry(t, k, set.FiredHeader(7, "me"))
	e := entry.Parse(p, in)
	want := set.Request
	if e.Kind != entry.Fired || e.Generation != 7 || e.Instance != "me" || e.Problem != nil {
		t.Errorf("the firing is parsed as %+v", e)
	}
	if !reflect.DeepEqual(e.Request, want) {
		t.Errorf("the fired message:\n got %+v\nwant %+v", e.Request, want)
	}
	if got := in.Header[message.HeaderExpected]; !slices.Equal(got, []string{"7"}) || in.Header["Nats-Msg-Id"] != nil {
		t.Errorf("the firing expects %q, and has the id %q: want 7, and no id", got, in.Header["Nats-Msg-Id"])
	}
	over := entry.Parse(p, firedEntry(t, k, set.OverHeader(7, 8, entry.Delivered)))
	if over.Kind != entry.Over || over.Generation != 7 {
		t.Errorf("the outcome is parsed as %+v", over)
	}
}

// TestFiringIsProven: a firing counts only with a seal under a known key, on its own subject, and after its set.
func TestFiringIsProven(t *testing.T) {
	k, p, set := timerSet()
	for what, change := range map[string]func(in *message.Incoming){
		"no seal":            func(in *message.Incoming) { delete(in.Header, "Delay-Seal") },
		"another body":       func(in *message.Incoming) { in.Data = []byte("other") },
		"another subject":    func(in *message.Incoming) { in.Subject = "delaytimer.key.orders.y" },
		"another generation": func(in *message.Incoming) { in.Header["Delay-Fired"] = []string{"6 me"} },
		"relayed":            func(in *message.Incoming) { in.Header["Nats-Stream"] = []string{"DELAY_TIMERS"} },
		"before it was set":  func(in *message.Incoming) { in.Sequence = 7 },
	} {
		in := firedEntry(t, k, set.FiredHeader(7, "me"))
		in.Header = maps.Clone(in.Header)
		change(&in)
		if e := entry.Parse(p, in); e.Kind != entry.Set || e.Problem == nil {
			t.Errorf("%s: the firing is valid, want an invalid set: %+v", what, e)
		}
	}
	in := firedEntry(t, k, set.FiredHeader(7, "me"))
	if e := entry.Parse(policyOf(keysOf(secretTwo)), in); e.Kind != entry.Unproven {
		t.Errorf("under an unknown key, the firing is %+v, want unproven", e)
	}
	in.KeysCurrent = true
	if e := entry.Parse(policyOf(keysOf(secretTwo)), in); e.Kind != entry.Set || e.Problem == nil {
		t.Errorf("under a key that no broker has, the firing is %+v, want an invalid set", e)
	}
}

// FuzzTimer parses entries with any content: no entry without a seal counts as a broker's, and each parsed set can be
// moved and fired.
func FuzzTimer(f *testing.F) {
	for _, lines := range [][]string{
		{"Delay-For: 1h"}, {"Delay-Until: 1795176000", "X: y"}, {"Delay-Cancel: 1"}, {"Delay-Fired: 7 me"},
		{"Delay-Over: 7 x"}, {"Delay-Every: 15m", "Delay-Jitter: 1m", "Delay-Rounds: 3"},
		{"Delay-Cron: 0 3 * * *", "Delay-Time-Zone: Europe/Berlin", "Delay-Missed-Rounds: all"},
		{"Delay-Fired: 3 x", "Delay-First: 1795176000", "Delay-Next: 1795176000", "Delay-Every: 1m"},
		{"delay-cancel: ", "delay-for: 1s"},
		{"Delay-For: 1m", "Delay-Seal: AAAAAAAA.x", "Delay-Fired: 3 x"},
	} {
		f.Add("delaytimer.key.orders.x", []byte(block(lines...)))
	}
	f.Add("delaytimer.k\x00y.orders.x", []byte(block("Delay-For: 1h")))
	f.Add("delaysys.armed", []byte(block()))
	k := keysOf(secretOne)
	p := policyOf(k)
	f.Fuzz(func(t *testing.T, subject string, block []byte) {
		h, err := nats.DecodeHeadersMsg(block)
		if err != nil {
			return
		}
		e := entry.Parse(p, timerEntry(subject, 7, message.Header(h)))
		switch e.Kind {
		case entry.Fired, entry.Over:
			t.Fatalf("an entry without a seal is valid: %+v", e)
		case entry.Set:
			if e.Problem != nil {
				wantProblem(t, subject, e.Problem, e.Problem.Code)
				wire(t, e.Request.DeadHeader(e.Problem))
				return
			}
		default:
			return
		}
		checkAccepted(t, p, subject, e.Request)
		m := entry.Marker{Request: e.Request, Key: p.Names.Parse(subject).Token}
		if got, problem := entry.ParseMarker(p, markerOf(t, k, m, "1h")); problem != nil || got.Timer(p.Names) != subject {
			t.Errorf("%q: the marker is parsed as %+v, %v", subject, got, problem)
		}
		fired := e.FiredHeader(7, "me")
		k.SealMessage(subject, fired, nil)
		in := timerEntry(subject, 8, wire(t, fired))
		if got := entry.Parse(p, in); got.Kind != entry.Fired || got.Problem != nil || got.Request.ID != e.Request.ID {
			t.Errorf("%q: the firing is parsed as %+v", subject, got)
		}
		if r := e.Pending; r.Series != nil {
			checkRounds(t, k, p, in.Subject, r)
		}
	})
}
