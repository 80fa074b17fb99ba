package message_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"delaybroker/broker/message"
)

func moment(s string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		panic(err)
	}
	return t.UTC()
}

func TestClientSubjects(t *testing.T) {
	tests := []struct {
		subject string
		due     time.Time
		target  string
	}{
		{"delay.30m.orders.expire", at.Add(30 * time.Minute), "orders.expire"},
		{"delay.15m.orders.expire", at.Add(15 * time.Minute), "orders.expire"},
		{"delay.1d.x", at.Add(day), "x"},
		{"delay.0s.x", at, "x"},
		{"delay.1m.5s.x", at.Add(time.Minute), "5s.x"}, // a level has no dot, so no dot can split it
		{"delay.1h.123.x", at.Add(time.Hour), "123.x"},
		{"delay.1h.in.2h.at", at.Add(time.Hour), "in.2h.at"},
		{"delay.1h.orders.delay.30m.x", at.Add(time.Hour), "orders.delay.30m.x"},
		{"delayin.1h30m.orders.expire", at.Add(90 * time.Minute), "orders.expire"},
		{"delayin.1500ms.x", at.Add(1500 * time.Millisecond), "x"},
		{"delayin.2d12h.a.b.c", at.Add(60 * time.Hour), "a.b.c"},
		{"delayin.366d.x", at.Add(366 * day), "x"},
		{"delayin.0ms.x", at, "x"},
		{"delayin.5s.2nd.x", at.Add(5 * time.Second), "2nd.x"},
		{"delayin.5s.x2.y", at.Add(5 * time.Second), "x2.y"},
		{"delayat.2026-11-20T10:00:00Z.orders.x", moment("2026-11-20T10:00:00Z"), "orders.x"},
		{"delayat.2026-11-20T10:00:00+01:00.x", at, "x"}, // 09:00:00Z has passed, so due is the time of acceptance
		{"delayat.2026-11-20T10:00:00-01:30.x", moment("2026-11-20T11:30:00Z"), "x"},
		{"delayat.1795172400.orders.x", time.Unix(1795172400, 0).UTC(), "orders.x"},
		{"delayat.1795172400123.orders.x", time.UnixMilli(1795172400123).UTC(), "orders.x"},
		{"delayat.1732060800.x", at, "x"},
		{"delayat.1732060800123.x", at, "x"},
		{"delayat.0.x", at, "x"},
		{"delayat.0000-01-01T00:00:00Z.x", at, "x"},
		{"delayat.2027-11-21T09:00:00Z.x", moment("2027-11-21T09:00:00Z"), "x"},
		{"delayat.1795172400.2nd.x", time.Unix(1795172400, 0).UTC(), "2nd.x"},
	}
	for _, tt := range tests {
		r, problem := parse(tt.subject)
		if problem != nil {
			t.Errorf("%s: got the problem %v, want none", tt.subject, problem)
			continue
		}
		if got, want := r.Due, tt.due; got != want {
			t.Errorf("%s: due %v, want %v", tt.subject, got, want)
		}
		if got, want := r.Target, tt.target; got != want {
			t.Errorf("%s: target %q, want %q", tt.subject, got, want)
		}
		if got, want := r.ID, "DELAY_30m-1234-"+fmt.Sprint(at.UnixNano()); got != want {
			t.Errorf("%s: id %q, want %q", tt.subject, got, want)
		}
		if got, want := r.Accepted, at; got != want {
			t.Errorf("%s: accepted %v, want %v", tt.subject, got, want)
		}
		if got, want := r.NextAttempt(), r.Due; got != want || r.Hop != 0 {
			t.Errorf("%s: next attempt %v, hop %d; want %v, 0", tt.subject, got, r.Hop, want)
		}
	}
}

// invalidTimes are subjects with a time that cannot be parsed or is not allowed, with parts of the problem's sentence.
var invalidTimes = []struct {
	subject string
	code    message.Code
	hints   []string // parts of the sentence
}{
	// As seconds, the first of these is the last second of the year 9999; as milliseconds, it would be in 1978.
	{"delayat.253402300799.x", message.BadTime, []string{"253402300799", "12 digits", "10", "13"}},
	{"delayat.173206080000.x", message.BadTime, []string{"12 digits"}},
	// A dot splits the time.
	{"delayat.1732060800.123.orders.x", message.BadTime, []string{`"1732060800"`, `"123"`, "dot", "Delay-Until"}},
	{"delayat.1732060800.123", message.BadTime, []string{`"123"`}},
	{"delayat.1732060800.123456.x", message.BadTime, []string{`"123456"`}},
	{"delayat.1.732060800123e+09.orders.x", message.BadTime, []string{`"732060800123e+09"`}}, // Go's print of a float
	{"delayat.1.7320608e9.orders.x", message.BadTime, []string{`"7320608e9"`}},
	{"delayat.1.7320608E+9.orders.x", message.BadTime, []string{`"7320608E+9"`}},
	{"delayat.1732060800.5s.x", message.BadTime, []string{`"5s"`}},
	{"delayat.2026-11-20T10:00:00.000Z.orders.x", message.BadTime, []string{`"2026-11-20T10:00:00"`, `"000Z"`}},
	{"delayat.2026-11-20T10:00:00.000z.x", message.BadTime, []string{`"000z"`}},
	{"delayat.2026-11-20T10:00:00.123+01:00.x", message.BadTime, []string{`"123+01:00"`}},
	{"delayat.2026-11-20T10:00:00.123-0100.x", message.BadTime, []string{`"123-0100"`}},
	{"delayin.1.5s.x", message.BadTime, []string{`"1"`, `"5s"`}},
	{"delayin.1.5h.x", message.BadTime, []string{`"5h"`}},
	{"delayin.1.500ms.x", message.BadTime, []string{`"500ms"`}},
	{"delayin.1.5h30m.x", message.BadTime, []string{`"1"`}},
	{"delayin.10s.5s.x", message.BadTime, []string{`"5s"`}},
	{"delay.1.5s.x", message.BadTime, []string{`"1"`, "1s for seconds"}},
	// The text is not a time.
	{"delayat.tomorrow.x", message.BadTime, []string{`"tomorrow"`, "RFC 3339"}},
	{"delayat.2026-11-20.x", message.BadTime, []string{`"2026-11-20"`}},
	{"delayat.2026-11-20T10:00:00.x", message.BadTime, []string{"zone"}},
	{"delayat.2026-11-20T10:00:00,5Z.x", message.BadTime, nil},
	{"delayat.2026-11-20T10:00:00,000Z.x", message.BadTime, nil},
	{"delayat.2026-11-20T1:00:00Z.x", message.BadTime, nil},
	{"delayat.2026-11-20T9:00:00Z.x", message.BadTime, nil},
	{"delayat.2026-11-20T10:00Z.x", message.BadTime, nil},
	{"delayat.2026-11-20T10:00:60Z.x", message.BadTime, nil},
	{"delayat.2026-11-20T24:00:00Z.x", message.BadTime, nil},
	{"delayat.2026-02-29T10:00:00Z.x", message.BadTime, nil},
	{"delayat.2026-11-31T10:00:00Z.x", message.BadTime, nil},
	{"delayat.2026-11-20t10:00:00z.x", message.BadTime, nil},
	{"delayat.2026-11-20T10:00:00+0100.x", message.BadTime, nil},
	{"delayat.2026-11-20T10:00:00+01.x", message.BadTime, nil},
	{"delayat.2026-11-20T10:00:00ZZ.x", message.BadTime, nil},
	{"delayat.20261120T100000Z.x", message.BadTime, nil},
	{"delayat.10000-01-01T00:00:00Z.x", message.BadTime, nil},
	{"delayat.9999-12-31T23:59:59-00:01.x", message.BadTime, nil}, // in UTC the year 10000, which RFC 3339 cannot express
	{"delayat.0000-01-01T00:00:00+00:01.x", message.BadTime, nil},
	{"delayat.-1732060800.x", message.BadTime, []string{`"-1732060800"`}},
	{"delayat.+1732060800.x", message.BadTime, nil},
	{"delayat.1732060800s.x", message.BadTime, nil},
	{"delayat.1e9.x", message.BadTime, nil},
	{"delayat.0x10.x", message.BadTime, nil},
	{"delayat.1732060800123456.x", message.BadTime, nil},    // microseconds
	{"delayat.1732060800123456789.x", message.BadTime, nil}, // nanoseconds
	{"delayat." + strings.Repeat("9", 40) + ".x", message.BadTime, nil},
	{"delayat.30m.x", message.BadTime, []string{`"30m"`}},
	{"delayin.x", message.BadTime, []string{`"x"`}},
	{"delayin.30.x", message.BadTime, []string{"30s for seconds"}},
	{"delayin.-5s.x", message.BadTime, []string{`"-"`}},
	{"delayin.30M.x", message.BadTime, []string{"lower case"}},
	{"delayin.30m1h.x", message.BadTime, []string{"order"}},
	{"delayin.1y.x", message.BadTime, []string{`"y" is not a unit`}},
	{"delayin." + strings.Repeat("1", 60) + "s.x", message.BadTime, []string{"61 bytes"}},
	{"delayin.2026-11-20T10:00:00Z.x", message.BadTime, nil},
	{"delay.in.30m.x", message.BadTime, []string{`"in"`}},
	{"delay.level.x", message.BadTime, []string{`"level"`}},
	{"delay.30m\x00.x", message.BadTime, nil},
	{"delay..x", message.BadTime, nil},
	{"delayin..x", message.BadTime, nil},
	{"delayat..x", message.BadTime, nil},
	// The time is too far ahead.
	{"delayin.366d1ms.x", message.TooFar, []string{"366d", "DELAY_MAX_DELAY"}},
	{"delay.367d.x", message.TooFar, nil},
	{"delayin.106751d.x", message.TooFar, nil},
	{"delayat.2030-01-01T00:00:00Z.x", message.TooFar, []string{"2030-01-01T00:00:00Z"}},
	{"delayat.9999-12-31T23:59:59Z.x", message.TooFar, []string{"9999-12-31"}},
	{"delayat.99999999999.x", message.TooFar, []string{"5138"}},
	{"delayat.99999999999999.x", message.TooFar, nil},
	// The subject is not a subject of a broker.
	{"", message.BadTarget, nil},
	{"orders.x", message.BadTarget, nil},
	{"delaytimer.key.orders.x", message.BadTarget, []string{"does not belong in the stream"}},
	{"delaysys.claim.key.orders.x", message.BadTarget, nil},
	{"delaydead.bad_time.orders.x", message.BadTarget, nil},
}

// TestInvalidTimes parses invalid times, as people and programs write them. Each is a problem.
func TestInvalidTimes(t *testing.T) {
	for _, tt := range invalidTimes {
		r, problem := parse(tt.subject)
		wantProblem(t, tt.subject, problem, tt.code, tt.hints...)
		if got, want := r.NextAttempt(), at; got != want {
			t.Errorf("%s: a bad request is due at %v, want its time of acceptance", tt.subject, got)
		}
	}
}

func TestMaxDelayZeroIsNoBound(t *testing.T) {
	p := message.Policy{Names: policy.Names}
	for _, subject := range []string{"delayat.9999-12-31T23:59:59Z.x", "delayin.106751d.x", "delayat.99999999999999.x"} {
		r, problem := p.Parse(incoming(subject, nil))
		if problem != nil {
			t.Errorf("%s: got the problem %v, want none", subject, problem)
			continue
		}
		got, problem := p.Parse(incoming(p.Names.Hop("30m", r.Target), wire(t, r.HopHeader())))
		if problem != nil || got.Due != r.Due {
			t.Errorf("%s: after a hop due %v, %v, want %v", subject, got.Due, problem, r.Due)
		}
	}
}

func TestUndecodableHeadersAreAProblem(t *testing.T) {
	in := incoming("delay.1s.orders.x", nil)
	in.Undecodable = true
	r, problem := policy.Parse(in)
	wantProblem(t, "undecodable", problem, message.BadHeaders, "CRLF")
	if got, want := r.Target, "orders.x"; got != want {
		t.Errorf("target %q, want %q: its tenant may read the dead letter", got, want)
	}
}

func TestWithRefusal(t *testing.T) {
	r := mustParse(t, "delay.1s.x")
	first, second, again := at.Add(time.Minute), at.Add(time.Hour), at.Add(2*time.Hour)
	twice := r.WithRefusal(first, second, "no stock").WithRefusal(second, again, "no stock")
	if got, want := twice.Attempts, 2; got != want {
		t.Errorf("attempts %d, want %d", got, want)
	}
	if got, want := twice.FirstFailure, first; got != want {
		t.Errorf("first failure %v, want %v", got, want)
	}
	if got, want := twice.LastFailure, second; got != want {
		t.Errorf("last failure %v, want %v", got, want)
	}
	if got, want := twice.NextAttempt(), again; got != want {
		t.Errorf("next attempt %v, want %v", got, want)
	}
	if got, want := r.WithRefusal(first, at, "no stock").NextAttempt(), r.Due; got != want {
		t.Errorf("next attempt %v, want %v: a retry time before due must not make the message early", got, want)
	}
}
