package message_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"delaybroker/broker/message"
	"delaybroker/test/poison"
)

func tokens(n int) string { return strings.TrimSuffix(strings.Repeat("t.", n), ".") }

func TestAllowedTargets(t *testing.T) {
	for _, target := range []string{
		"x", "orders", "orders.expire", "orders.$JS.x", "orders._INBOX.x", "orders.delay.30m.x", "delays.x", "delayed",
		"Delay.30m.x", "DELAY.x", "delay-x", "xdelay.30m", "delayins.x", "a.b.c.d.e.f.g", "123.orders", "5s",
		"2026-11-20T10:00:00Z.x", "a:b.c,d.e=f", `"quoted".x`, "#.%.&", "a/b", "-", "~", "x_.y$", "%24SYS.REQ", "%5FINBOX.x",
		"delay%2e30m.x", tokens(16), strings.Repeat("x", 256), strings.Repeat("x", 254) + ".y",
	} {
		if problem := policy.CheckTarget(target); problem != nil {
			t.Errorf("%q: got the problem %v, want none", target, problem)
		}
		if r, problem := parse("delay.1h." + target); problem != nil || r.Target != target {
			t.Errorf("delay.1h.%s: target %q, problem %v; want this target and none", target, r.Target, problem)
		}
	}
}

func TestForbiddenTargets(t *testing.T) {
	all := poison.Targets(policy.Names.Roots())
	if len(all) < 100 {
		t.Fatalf("%d targets, want at least 100", len(all))
	}
	open := message.Policy{Names: policy.Names, HeaderTargets: []string{">", "*", "*.>"}, Targets: []string{">"}}
	for target, hint := range all {
		wantProblem(t, fmt.Sprintf("target %.60q", target), policy.CheckTarget(target), message.BadTarget, hint)
		for _, subject := range []string{"delay.1h.", "delayin.90s.", "delayat.1795176000.", "delaysys.hop.1h."} {
			r, problem := policy.Parse(incoming(subject+target, nil))
			if problem == nil || r.Target != "" {
				t.Errorf("%s%.60q: target %q, problem %v; want no target and a problem", subject, target, r.Target, problem)
			}
		}
		// Delay-Target must not name a forbidden target either, even if the settings allow the header to name every target.
		h := message.Header{"Delay-Target": {target}}
		r, problem := open.Parse(incoming("delay.1h", h))
		if trimmed := strings.TrimSpace(target); all[trimmed] == "" {
			continue // without its padding, the value is an allowed target
		}
		wantProblem(t, fmt.Sprintf("Delay-Target %.60q", target), problem, message.BadTarget)
		if r.Target != "" {
			t.Errorf("Delay-Target %.60q: target %q, want none", target, r.Target)
		}
	}
}

func TestTargetsOfAnotherPrefix(t *testing.T) {
	p := message.Policy{Names: mustNames("late-2")}
	wantProblem(t, "late-2dead.x", p.CheckTarget("late-2dead.x"), message.BadTarget, "late-2dead.x")
	wantProblem(t, "no target", p.CheckTarget(""), message.BadTarget, "late-2.30m.orders.expire")
	if problem := p.CheckTarget("delay.30m.x"); problem != nil {
		t.Errorf("another broker's subject: got the problem %v, want none", problem)
	}
}

func TestTargetsAllowList(t *testing.T) {
	p := message.Policy{Names: policy.Names, Targets: []string{"orders.>", "mail.*.send", "exact"}}
	for _, target := range []string{"orders.x", "orders.x.y", "mail.a.send", "exact"} {
		if problem := p.CheckTarget(target); problem != nil {
			t.Errorf("%s: got the problem %v, want none", target, problem)
		}
	}
	for _, target := range []string{"orders", "mail.a.b.send", "mail.send", "exact.x", "Orders.x", "ordersx.y",
		"payments.capture"} {
		wantProblem(t, target, p.CheckTarget(target), message.BadTarget, "DELAY_TARGETS", target)
	}
	// DELAY_TARGETS may have become narrower while a message was between lanes.
	h := mustParse(t, "delay.1h.payments.capture").HopHeader()
	r, problem := p.Parse(incoming("delaysys.hop.1h.payments.capture", h))
	wantProblem(t, "on a hop", problem, message.BadTarget, "DELAY_TARGETS")
	if got, want := r.Target, ""; got != want {
		t.Errorf("target %q, want %q", got, want)
	}
}

func TestDelayTargetIsOptIn(t *testing.T) {
	on := message.Policy{Names: policy.Names, HeaderTargets: []string{"orders.>"}}
	narrow := message.Policy{Names: policy.Names, HeaderTargets: []string{">"}, Targets: []string{"mail.>"}}
	tests := []struct {
		policy        message.Policy
		subject, line string
		target        string
		hint          string // of the problem
	}{
		{on, "delay.30m", "Delay-Target: orders.x", "orders.x", ""},
		{on, "delay.30m", "DELAY-target:  orders.x ", "orders.x", ""},
		{on, "delay.30m", "delay-target: orders.x", "orders.x", ""},
		{on, "delay.30m", "Delay-Target: payments.x", "", "DELAY_HEADER_TARGETS"},
		{on, "delay.30m", "Delay-Target: orders", "", "DELAY_HEADER_TARGETS"},
		{on, "delay.30m", "Delay-Target: ", "", "no target"},
		{on, "delay.30m", "X: 1", "", "no target"},
		{on, "delay.30m.orders.x", "Delay-Target: orders.x", "", "leave the header out"},
		{on, "delay.30m.$SYS.x", "Delay-Target: orders.x", "", "leave the header out"},
		{policy, "delay.30m", "Delay-Target: orders.x", "", "DELAY_HEADER_TARGETS"},
		{policy, "delay.30m.mail.x", "Delay-Target: orders.x", "", "leave the header out"},
		{narrow, "delay.30m", "Delay-Target: orders.x", "", "DELAY_TARGETS"},
		{narrow, "delay.30m", "Delay-Target: mail.x", "mail.x", ""},
	}
	for _, tt := range tests {
		r, problem := tt.policy.Parse(incoming(tt.subject, header(tt.line)))
		what := tt.subject + " " + tt.line
		if tt.hint != "" {
			wantProblem(t, what, problem, message.BadTarget, tt.hint)
		} else if problem != nil {
			t.Errorf("%s: got the problem %v, want none", what, problem)
		}
		if got, want := r.Target, tt.target; got != want {
			t.Errorf("%s: target %q, want %q", what, got, want)
		}
	}
}

func TestMatch(t *testing.T) {
	tests := []struct {
		pattern string
		yes, no []string
	}{
		{">", []string{"a", "a.b"}, []string{"", ".a"}},
		{"a.>", []string{"a.b", "a.b.c"}, []string{"a", "b.a", "aa.b", "a..b"}},
		{"*", []string{"a"}, []string{"", "a.b"}},
		{"*.b", []string{"a.b"}, []string{"a", "b", "a.c", "a.b.c", ".b"}},
		{"a.*.c", []string{"a.b.c"}, []string{"a.c", "a.b.b.c", "a..c"}},
		{"a.*", []string{"a.b"}, []string{"a", "a.", "a.b.c"}},
		{"*.>", []string{"a.b", "a.b.c"}, []string{"a"}},
		{"a.b", []string{"a.b"}, []string{"A.b", "a.b.c", "a", "a.bb"}},
		{"a.>.b", nil, []string{"a.x.b", "a.x"}}, // > must be the last token
		{"a*", nil, []string{"ab", "a.b"}},
		{"", nil, []string{"", "a"}},
	}
	for _, tt := range tests {
		for _, subject := range slices.Concat(tt.yes, tt.no) {
			if got, want := message.Match(tt.pattern, subject), slices.Contains(tt.yes, subject); got != want {
				t.Errorf("Match(%q, %q) = %t, want %t", tt.pattern, subject, got, want)
			}
		}
	}
}

// TestOverlap: two patterns overlap if a subject matches both.
func TestOverlap(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{"a.b", "a.b", true},
		{"a.b", "a.c", false},
		{"a.*", "*.b", true},
		{"a.*", "a.b.c", false},
		{"a.>", "a.b.c", true},
		{"a.>", "b.>", false},
		{">", "a", true},
		{"a.*.c", "a.b.>", true},
		{"a.*.c", "a.b.*.d", false},
		{"a", "a.>", false},
	} {
		if got := message.Overlap(test.a, test.b); got != test.want {
			t.Errorf("%s and %s: got %v, want %v", test.a, test.b, got, test.want)
		}
		if got := message.Overlap(test.b, test.a); got != test.want {
			t.Errorf("%s and %s: got %v, want %v", test.b, test.a, got, test.want)
		}
	}
}
