package message_test

import (
	"strings"
	"testing"
	"time"

	"delaybroker/broker/message"
)

// TestDelayUntil: on a level's subject, Delay-Until sets the due time.
func TestDelayUntil(t *testing.T) {
	end := at.Add(30 * time.Minute)
	tests := []struct {
		until string
		due   time.Time
	}{
		{"2026-11-20T12:00:00Z", moment("2026-11-20T12:00:00Z")},
		{"2026-11-20T12:00:00.5Z", moment("2026-11-20T12:00:00.5Z")},
		{"2026-11-20T12:00:00.000Z", moment("2026-11-20T12:00:00Z")},
		{"2026-11-20T13:00:00.123456789+01:00", moment("2026-11-20T12:00:00.123456789Z")},
		{"1795176000", time.Unix(1795176000, 0).UTC()},
		{"1795176000123", time.UnixMilli(1795176000123).UTC()},
		{"  2026-11-20T12:00:00Z\t", moment("2026-11-20T12:00:00Z")},
		{end.Format(time.RFC3339Nano), end},
		{end.Add(1).Format(time.RFC3339Nano), end.Add(1)},
	}
	for _, tt := range tests {
		for _, name := range []string{"Delay-Until", "delay-until", "DELAY-UNTIL", "dElAy-UnTiL", " Delay-Until "} {
			r := mustParse(t, "delay.30m.x", name+": "+tt.until)
			if got, want := r.Due, tt.due; got != want {
				t.Errorf("%s %q: due %v, want %v", name, tt.until, got, want)
			}
		}
	}
}

func TestDelayUntilRefused(t *testing.T) {
	end := at.Add(30 * time.Minute)
	tests := []struct {
		subject, until string
		code           message.Code
		hint           string
	}{
		{"delay.30m.x", end.Add(-1).Format(time.RFC3339Nano), message.UntilEarly, "delayat.<time>"},
		{"delay.30m.x", "2026-11-20T09:15:00Z", message.UntilEarly, `"2026-11-20T09:15:00Z"`},
		{"delay.30m.x", "2020-01-01T00:00:00Z", message.UntilEarly, "level 30m"},
		{"delay.30m.x", "0001-01-01T00:00:00Z", message.UntilEarly, ""}, // Go's zero time
		{"delay.30m.x", "1732060800", message.UntilEarly, ""},
		{"delay.30m.x", "2030-01-01T00:00:00Z", message.TooFar, "2030-01-01T00:00:00Z"},
		{"delay.30m.x", "", message.BadTime, `""`}, // such as an unset variable of the client, which is a mistake
		{"delay.30m.x", "  ", message.BadTime, `""`},
		{"delay.30m.x", "1h", message.BadTime, `"1h"`},
		{"delay.30m.x", "1795176000.5", message.BadTime, `"1795176000.5"`},
		{"delay.30m.x", "1795176000123456", message.BadTime, ""},
		{"delay.30m.x", "2026-11-20T12:00:00", message.BadTime, "zone"},
		{"delay.30m.x", "2026-11-20T12:00:00,5Z", message.BadTime, ""},
		{"delay.30m.x", "2026-11-20T12:00:00.Z", message.BadTime, ""},
		{"delay.30m.x", "2026-11-20T12:00:00.1234567890Z", message.BadTime, ""}, // a truncated time would be early
		{"delay.30m.x", "2026-11-20 12:00:00Z", message.BadTime, ""},
		{"delay.30m.x", "Fri, 20 Nov 2026 12:00:00 GMT", message.BadTime, ""},
		{"delay.30m.x", "9999-12-31T23:59:59-01:00", message.BadTime, ""},
		{"delay.30m.x", "\x1b[2J\u202e\x00" + strings.Repeat("é", 4000), message.BadTime, `\x1b[2J\u202e\x00`},
		{"delay.1.5s.x", "2026-11-20T12:00:00Z", message.BadTime, ""},
		{"delayin.30m.x", "2026-11-20T12:00:00Z", message.TimeTwice, "Delay-Until"},
		{"delayin.30m.x", "", message.TimeTwice, "Delay-Until"},
		{"delayat.1795176000.x", "2026-11-20T12:00:00Z", message.TimeTwice, "delay.<level>"},
	}
	for _, tt := range tests {
		r, problem := parse(tt.subject, "Delay-Until: "+tt.until)
		wantProblem(t, tt.subject+" until "+tt.until, problem, tt.code, tt.hint)
		if got, want := r.Target, "x"; tt.code != message.BadTime && got != want {
			t.Errorf("%s until %s: target %q, want %q", tt.subject, tt.until, got, want)
		}
	}
}

func TestDelayForIsForTimersOnly(t *testing.T) {
	for _, subject := range []string{"delay.30m.x", "delayin.30m.x", "delayat.1795176000.x"} {
		for _, line := range []string{"Delay-For: 5m", "delay-for: ", "Delay-For: nonsense"} {
			_, problem := parse(subject, line)
			wantProblem(t, subject+" "+line, problem, message.TimeTwice, "Delay-For")
		}
	}
}

func TestOptions(t *testing.T) {
	due := at.Add(time.Hour)
	tests := []struct {
		line string
		want message.Request // only the fields that the options set
	}{
		{"Delay-Deliver: auto", message.Request{Mode: message.ModeAuto}},
		{"Delay-Deliver: Stream", message.Request{Mode: message.ModeStream}},
		{"DELAY-DELIVER: CORE ", message.Request{Mode: message.ModeCore}},
		{"Delay-Deliver: request", message.Request{Mode: message.ModeRequest}},
		{"Delay-Deliver: ", message.Request{}},
		{"Delay-TTL: 1s", message.Request{TTL: "1"}},
		{"Delay-TTL: 1001ms", message.Request{TTL: "2"}},
		{"Delay-TTL: 1s1ms", message.Request{TTL: "2"}},
		{"Delay-TTL: 1999ms", message.Request{TTL: "2"}},
		{"Delay-TTL: 1h30m", message.Request{TTL: "5400"}},
		{"Delay-TTL: 36500d", message.Request{TTL: "3153600000"}},
		{"delay-ttl: never", message.Request{TTL: "never"}},
		{"Delay-Expires: 10m", message.Request{Expires: due.Add(10 * time.Minute)}},
		{"Delay-Expires: 0s", message.Request{Expires: due}},
		{"Delay-Expires: 1ms", message.Request{Expires: due.Add(time.Millisecond)}},
		{"Delay-Expires: 2026-11-20T12:00:00.5Z", message.Request{Expires: moment("2026-11-20T12:00:00.5Z")}},
		{"delay-expires: 1795176000123", message.Request{Expires: time.UnixMilli(1795176000123).UTC()}},
		{"Delay-Expires: " + due.Format(time.RFC3339Nano), message.Request{Expires: due}},
		{"Delay-Expires: 9999-12-31T23:59:59Z", message.Request{Expires: moment("9999-12-31T23:59:59Z")}},
		{"Delay-Expires: 106751d", message.Request{Expires: due.Add(106751 * day)}},
		{"Delay-Max-Attempts: 1", message.Request{MaxAttempts: 1}},
		{"delay-max-attempts:  5 ", message.Request{MaxAttempts: 5}},
		{"Delay-Max-Attempts: ", message.Request{}},
		{"Nats-Msg-Id: order-42", message.Request{MsgID: "order-42"}},
		{"nats-msg-id: order-42", message.Request{}}, // the server ignores this spelling
	}
	for _, tt := range tests {
		got, want := mustParse(t, "delay.1h.x", tt.line), tt.want
		if got.Mode != want.Mode || got.TTL != want.TTL || got.Expires != want.Expires || got.MsgID != want.MsgID ||
			got.MaxAttempts != want.MaxAttempts {
			t.Errorf("%s: got %q %q %v %q, want %q %q %v %q", tt.line,
				got.Mode, got.TTL, got.Expires, got.MsgID, want.Mode, want.TTL, want.Expires, want.MsgID)
		}
		if got.Due != due || got.User != nil {
			t.Errorf("%s: due %v with the headers %v, want %v without headers", tt.line, got.Due, got.User, due)
		}
	}
}

func TestOptionsRefused(t *testing.T) {
	tests := []struct{ line, hint string }{
		{"Delay-Deliver: service", `"service": want auto, stream, core or request`},
		{"Delay-Deliver: auto,core", `"auto,core"`},
		{"Delay-TTL: 999ms", `"999ms"`},
		{"Delay-TTL: 0s", "1s"},
		{"Delay-TTL: 60", `"60"`},
		{"Delay-TTL: Never", `"Never"`},
		{"Delay-TTL: -1s", `"-1s"`},
		{"Delay-TTL: 1.5s", `"1.5s"`},
		{"Delay-TTL: 36500d1ms", "36500d"},
		{"Delay-TTL: 106751d23h47m16s854ms", "never"}, // rounding it up would overflow
		{"Delay-Expires: 600", "before"},              // a unix time of 1970
		{"Delay-Expires: 2026-11-20T09:59:59Z", `"2026-11-20T09:59:59Z" is before`},
		{"Delay-Expires: " + at.Add(time.Hour-1).Format(time.RFC3339Nano), "before"},
		{"Delay-Expires: 0001-01-01T00:00:00Z", "before"},
		{"Delay-Expires: soon", `"soon"`},
		{"Delay-Expires: 1.5s", `"1.5s"`},
		{"Delay-Expires: 9999-12-31T23:59:59-00:01", "want a duration"},
		{"Delay-Max-Attempts: 0", `"0": want a whole number from 1 to`},
		{"Delay-Max-Attempts: -1", `"-1"`},
		{"Delay-Max-Attempts: 1.5", `"1.5"`},
		{"Delay-Max-Attempts: many", "(DELAY_ATTEMPTS)"},
		{"Delay-Max-Attempts: 99999999999999999999", "want a whole number"},
	}
	for _, tt := range tests {
		name, _, _ := strings.Cut(tt.line, ":")
		r, problem := parse("delay.1h.orders.x", tt.line)
		wantProblem(t, tt.line, problem, message.BadOption, tt.hint, name)
		if got, want := r.Target, "orders.x"; got != want {
			t.Errorf("%s: target %q, want %q", tt.line, got, want)
		}
		checkAllClean(t, tt.line, r, problem)
	}
}

// TestMaxAttemptsIsBounded: Delay-Max-Attempts may lower the number of attempts in the settings, and not raise it.
func TestMaxAttemptsIsBounded(t *testing.T) {
	p := message.Policy{Names: policy.Names, Attempts: func(target string) int {
		if target == "shop.mail" {
			return 5
		}
		return 20
	}}
	for _, tt := range []struct {
		target, asked string
		want          int // zero: refused
		bound         string
	}{
		{"shop.mail", "5", 5, ""}, {"shop.mail", "6", 0, `"6": want a whole number from 1 to 5, `},
		{"orders.x", "20", 20, ""}, {"orders.x", "21", 0, `"21": want a whole number from 1 to 20, `},
	} {
		r, problem := p.Parse(incoming("delay.1h."+tt.target, header("Delay-Max-Attempts: "+tt.asked)))
		if tt.want == 0 {
			wantProblem(t, tt.target+" "+tt.asked, problem, message.BadOption, tt.bound)
		} else if problem != nil || r.MaxAttempts != tt.want {
			t.Errorf("%s %s: got %d, problem %v; want %d", tt.target, tt.asked, r.MaxAttempts, problem, tt.want)
		}
	}
	// A message between lanes was accepted before. If the settings are lower now, it does not become a dead letter.
	r := mustParse(t, "delay.1h.shop.mail", "Delay-Max-Attempts: 9")
	hop := incoming(policy.Names.Hop("1h", r.Target), wire(t, r.HopHeader()))
	if r, problem := p.Parse(hop); problem != nil || r.MaxAttempts != 9 {
		t.Errorf("between lanes: got %d, %v, want 9", r.MaxAttempts, problem)
	}
}

func TestExpiresAfterTheLastYear(t *testing.T) {
	p := message.Policy{Names: policy.Names}
	_, problem := p.Parse(incoming("delayat.9999-12-31T23:59:59Z.x", header("Delay-Expires: 1s")))
	wantProblem(t, "expires in the year 10000", problem, message.BadOption, "9999")
}

// TestHeaderTwice: a duplicate header is a problem, also if the second name has another case or padding.
func TestHeaderTwice(t *testing.T) {
	values := map[string]string{
		message.HeaderUntil: "2026-11-20T12:00:00Z", message.HeaderExpires: "10m", message.HeaderDeliver: "core",
		message.HeaderTTL: "5s", message.HeaderMaxAttempts: "3", message.HeaderTarget: "orders.x",
	}
	for name, value := range values {
		for _, other := range []string{name, strings.ToLower(name), strings.ToUpper(name), name + " ", "\t" + name} {
			_, problem := parse("delay.1h.x", name+": "+value, other+": "+value)
			wantProblem(t, name+" and "+other, problem, message.TimeTwice, name, "2 times")
		}
	}
}

// TestStateHeadersOfClientsAreIgnored: on a client's subject, state headers have no effect.
func TestStateHeadersOfClientsAreIgnored(t *testing.T) {
	forged := []string{
		"Delay-Id: DELAY_1h-1-1", "Delay-Due: 2020-01-01T00:00:00Z", "Delay-Accepted: 2020-01-01T00:00:00Z",
		"Delay-Msg-Id: forged", "Delay-Format: 99", "Delay-Hop: 49", "Delay-Attempts: 9",
		"Delay-First-Failure: 2020-01-01T00:00:00Z", "Delay-Last-Failure: 2020-01-01T00:00:00Z",
		"Delay-Retry-At: 2099-01-01T00:00:00Z", "Delay-Error-Code: expired",
		"Delay-Error: forged", "Delay-Subject: forged", "Delay-Last-Error: forged", "Delay-Deferred: forged",
		"Delay-Attempts-Allowed: 9",
	}
	for _, subject := range []string{"delay.1h.x", "delayin.1h.x", "delayat.1795176000.x"} {
		plain := mustParse(t, subject, "X-Kept: 1")
		for _, spell := range []func(string) string{strings.TrimSpace, strings.ToLower, strings.ToUpper} {
			lines := []string{"X-Kept: 1"}
			for _, line := range forged {
				name, value, _ := strings.Cut(line, ": ")
				// Each header is a duplicate, which would be a problem if the header were parsed.
				lines = append(lines, spell(name)+": "+value, spell(name)+": "+value)
			}
			r := mustParse(t, subject, lines...)
			checkSame(t, subject, r, plain)
			checkAllClean(t, subject, r, nil)
		}
	}
}
