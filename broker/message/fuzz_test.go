package message_test

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/message"
	"delaybroker/test/poison"
)

func FuzzSubject(f *testing.F) {
	for _, s := range []string{
		"delay.30m.orders.expire", "delayin.1h30m.x", "delayat.1732060800.123.orders.x", "delayin.1.5s.x", "delay.in.30m.x",
		"delayat.2026-11-20T10:00:00.000Z.x", "delayat.2026-11-20T10:00:00Z.x", "delaysys.hop.1h.x", "delaysys.retry..",
		"delay", "", "...", "delay.1h.$SYS.x", "delay.1h.x\x00", "delayat.9999-12-31T23:59:59-23:59.x",
		"delayat.1.732060800123e+09.x", "delay.1h.>",
	} {
		f.Add(s)
	}
	open := message.Policy{Names: policy.Names}
	f.Fuzz(func(t *testing.T, subject string) {
		for _, p := range []message.Policy{policy, open} {
			r, problem := p.Parse(incoming(subject, nil))
			if problem != nil {
				checkProblem(t, subject, problem)
				if r.NextAttempt().Before(at) {
					t.Errorf("%q: a bad request is due %v, before its acceptance", subject, r.NextAttempt())
				}
				if r.Target != "" && p.CheckTarget(r.Target) != nil {
					t.Errorf("%q: the dead letter has the forbidden target %q", subject, r.Target)
				}
				encode(t, r.DeadHeader(problem))
				continue
			}
			checkAccepted(t, p, subject, r)
			tokens := strings.SplitN(subject, ".", 3)
			if len(tokens) != 3 || tokens[2] != r.Target ||
				!slices.Contains([]string{"delay", "delayin", "delayat"}, tokens[0]) {
				t.Errorf("%q: target %q, want the part after the second token", subject, r.Target)
			}
			again, problem := p.Parse(incoming(p.Names.Hop("1h", r.Target), wire(t, r.HopHeader())))
			if problem != nil {
				t.Fatalf("%q: after a hop: %v", subject, problem)
			}
			r.Hop++
			checkSame(t, subject, again, r)
		}
	})
}

// FuzzHeaders parses any header block of a client.
func FuzzHeaders(f *testing.F) {
	for i, disguise := range poison.Disguises {
		f.Add([]byte(block("X-Order: 42", disguise.Lines(poison.Headers[i%len(poison.Headers)]), "traceparent: 00-a-b-01")),
			uint8(i))
		f.Add([]byte(block(disguise.Lines("Delay-Until: 2026-11-20T12:00:00Z"), disguise.Lines("Nats-Msg-Id: 1"))), uint8(0))
	}
	f.Add([]byte("NATS/1.0 503 No Responders\r\n\r\n"), uint8(1))
	f.Add([]byte("NATS/1.0\nA:\nA:\nDelay-TTL:1w\nDelay-Expires: 9999-12-31T23:59:59-23:59\n\n"), uint8(2))
	f.Add([]byte(block("Delay-Target: orders.x\u00a0", "Delay-Deliver: Core", "Delay-Until: ")), uint8(3))
	f.Add([]byte(block("Delay-Spread: 106751d", "Delay-Expires: 1s", "Nats-Msg-Id: \xff")), uint8(4))
	p := policy
	p.HeaderTargets = []string{">"}
	f.Fuzz(func(t *testing.T, block []byte, choice uint8) {
		h, err := nats.DecodeHeadersMsg(block)
		if err != nil {
			return
		}
		subject := []string{"delay.1h.x", "delayin.1h.x", "delayat.1795176000.x", "delay.1h"}[choice%4]
		r, problem := p.Parse(incoming(subject, message.Header(h)))
		checkAllClean(t, "block", r, problem)
		if got, want := len(encode(t, r.DeadHeader(orProblem(problem)))), len(block)+reserve; got > want {
			t.Errorf("the dead letter's headers have %d bytes, want at most %d", got, want)
		}
		if problem != nil {
			checkProblem(t, "block", problem)
			return
		}
		checkAccepted(t, p, subject, r)
		for name := range r.User {
			if _, ok := h[name]; !ok {
				t.Errorf("the user header %q is not in the message", name)
			}
		}
		// The first encoding trims the values. Every further hop leaves them unchanged.
		hop := p.Names.Hop("1h", r.Target)
		second, problem := p.Parse(incoming(hop, wire(t, r.HopHeader())))
		if problem != nil {
			t.Fatalf("after a hop: %v", problem)
		}
		if second.Due != r.Due || second.Expires != r.Expires || second.TTL != r.TTL || second.Mode != r.Mode ||
			second.ID != r.ID ||
			!slices.Equal(slices.Sorted(maps.Keys(second.User)), slices.Sorted(maps.Keys(r.User))) {
			t.Errorf("after a hop %+v, want %+v", second, r)
		}
		third, problem := p.Parse(incoming(hop, wire(t, second.HopHeader())))
		if problem != nil {
			t.Fatalf("after two hops: %v", problem)
		}
		second.Hop++
		checkSame(t, "after two hops", third, second)
	})
}

var (
	rfc3339 = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}` +
		`(\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})$`)
	seconds = regexp.MustCompile(`^[0-9]{1,11}$`)
	millis  = regexp.MustCompile(`^[0-9]{13,14}$`)
)

// naiveTime parses a time without optimizations. It returns false if the text is not a time.
func naiveTime(s string) (time.Time, bool) {
	var n int64
	for i := range s {
		n = n*10 + int64(s[i]-'0')
	}
	switch {
	case seconds.MatchString(s):
		return time.Unix(n, 0).UTC(), true
	case millis.MatchString(s):
		return time.Unix(n/1000, n%1000*1e6).UTC(), true
	case rfc3339.MatchString(s):
		t, err := time.Parse(time.RFC3339Nano, s)
		t = t.UTC()
		return t, err == nil && len(t.Format(time.RFC3339)) == len("2006-01-02T15:04:05Z") && t.Year() >= 0
	}
	return time.Time{}, false
}

func FuzzTime(f *testing.F) {
	for _, s := range []string{
		"2026-11-20T10:00:00Z", "2026-11-20T10:00:00.5+01:00", "2026-11-20T10:00:00,5Z", "2026-11-20T1:00:00Z",
		"2026-11-20T10:00:60Z", "1732060800", "1732060800123", "9999-12-31T23:59:59-23:59", "0000-01-01T00:00:00+00:01",
		"0001-01-01T00:00:00Z", "-1", "", "2026-11-20T10:00:00", "2026-11-20T10:00:00.1234567890Z",
		"2026-11-20T10:00:00+24:00", "601732060800", "99999999999999", "00000000000000000", "1e9",
	} {
		f.Add(s)
	}
	p := message.Policy{Names: policy.Names}
	early := time.Unix(0, 0).UTC()
	f.Fuzz(func(t *testing.T, s string) {
		// The time in a header, on a message of 1970, so that nearly every time is in the future.
		want, ok := naiveTime(strings.TrimSpace(s))
		in := incoming("delay.0s.x", message.Header{"Delay-Until": {s}})
		in.At = early
		r, problem := p.Parse(in)
		switch {
		case problem != nil:
			checkProblem(t, s, problem)
			if got, want := problem.Code == message.UntilEarly, ok && want.Before(early); got != want || ok != want {
				t.Errorf("Delay-Until %q: %v, want a time: %t", s, problem, ok)
			}
		case !ok || r.Due != want:
			t.Errorf("Delay-Until %q: due %v, want %v, %t", s, r.Due, want, ok)
		}
		// The time as a token of a subject.
		if strings.ContainsAny(s, ".") {
			return
		}
		want, ok = naiveTime(s)
		r, problem = p.Parse(incoming("delayat."+s+".x", nil))
		if got := problem == nil; got != ok {
			t.Errorf("delayat.%s: %v, want a time: %t", s, problem, ok)
		}
		if want.Before(at) {
			want = at
		}
		if ok && r.Due != want {
			t.Errorf("delayat.%s: due %v, want %v", s, r.Due, want)
		}
	})
}

func FuzzTarget(f *testing.F) {
	for target := range poison.Targets(policy.Names.Roots()) {
		f.Add(target)
	}
	good := regexp.MustCompile(`^[!-~]+$`)
	f.Fuzz(func(t *testing.T, target string) {
		problem := policy.CheckTarget(target)
		tokens := strings.Split(target, ".")
		want := good.MatchString(target) && !strings.ContainsAny(target, "*>") && len(target) <= 256 && len(tokens) <= 16 &&
			!slices.Contains(tokens, "") && !strings.HasPrefix(target, "$") && !strings.HasPrefix(target, "_") &&
			!slices.Contains(policy.Names.Roots(), tokens[0])
		if got := problem == nil; got != want {
			t.Errorf("target %q: %v, want allowed: %t", target, problem, want)
		}
		if problem != nil {
			checkProblem(t, target, problem)
		}
	})
}

func FuzzParseID(f *testing.F) {
	for _, s := range []string{"DELAY_30m-1234-1732060800000000000", "a-1-1", "a-b-1-1", "-1-1", "a-01-1", "a--1-1",
		"a.b-1-1", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, err := message.ParseID(s)
		if err != nil {
			return
		}
		if got := id.String(); got != s {
			t.Errorf("%q is formatted as %q", s, got)
		}
		if strings.ContainsAny(s, ".*> \r\n\t") {
			t.Errorf("%q is accepted, but is not a token of a subject", s)
		}
	})
}

func FuzzMatch(f *testing.F) {
	for _, s := range [][2]string{{">", "a.b"}, {"a.*", "a.b"}, {"a.>", "a"}, {"*.*", "a.b"}, {"a.>.b", "a.x.b"}, {"", ""},
		{"*", "a.b"}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, pattern, subject string) {
		got := message.Match(pattern, subject)
		if slices.Contains(strings.Split(subject, "."), "") || strings.ContainsAny(subject, "*>") {
			return // not a valid subject
		}
		if want := granted(pattern, subject); got != want {
			t.Errorf("Match(%q, %q) = %t, want %t", pattern, subject, got, want)
		}
	})
}
