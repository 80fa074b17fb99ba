package message_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"delaybroker/broker/message"
)

// harmful are the headers that must not be passed on, each with a value that does its harm.
var harmful = []string{
	"Nats-Msg-Id: forged", "Nats-Expected-Stream: OTHER", "Nats-Expected-Last-Sequence: 1",
	"Nats-Expected-Last-Subject-Sequence: 1", "Nats-Expected-Last-Subject-Sequence-Subject: a", "Nats-Expected-Last-Msg-Id: a",
	"Nats-Rollup: all", "Nats-Rollup: sub", "Nats-TTL: 1", "Nats-Schedule: @at 2030-01-01T00:00:00Z", "Nats-Schedule-Target: a",
	"Nats-Schedule-Source: a", "Nats-Schedule-TTL: 1s", "Nats-Schedule-Time-Zone: UTC", "Nats-Schedule-Rollup: sub",
	"Nats-Schedule-Next: purge", "Nats-Scheduler: a", "Nats-Batch-Id: a", "Nats-Batch-Sequence: 1", "Nats-Batch-Commit: 1",
	"Nats-Incr: +1", "Nats-Counter-Sources: {}", "Nats-Trace-Dest: a", "Nats-Trace-Only: true", "Nats-Trace-Hop: 1",
	"Nats-Trace-Origin-Account: A", "Nats-Request-Info: {}", "Nats-Server-Xkey: a", "Nats-Stream-Source: a", "Nats-Stream: a",
	"Nats-Subject: a", "Nats-Sequence: 1", "Nats-Last-Sequence: 1", "Nats-Time-Stamp: a", "Nats-Num-Pending: 1",
	"Nats-UpTo-Sequence: 1", "Nats-Consumer-Stalled: a", "Nats-Last-Consumer: 1", "Nats-Last-Stream: 1", "Nats-Pending-Messages: 1",
	"Nats-Pending-Bytes: 1", "Nats-Pin-Id: a", "Nats-Msg-Size: 1", "Nats-Response-Type: a", "Nats-Required-Api-Level: 9",
	"Nats-Marker-Reason: MaxAge", "Nats-Stream-Identity: a", "Nats-Of-Tomorrow: a", "Nats-: a",
	"Status: 409", "Status: 100", "Description: Idle Heartbeat", "KV-Operation: PURGE",
	"Delay-Id: a-1-1", "Delay-Due: 2020-01-01T00:00:00Z", "Delay-Accepted: 2020-01-01T00:00:00Z", "Delay-Msg-Id: forged",
	"Delay-Format: 9", "Delay-Hop: 9", "Delay-Attempts: 9", "Delay-First-Failure: 2020-01-01T00:00:00Z",
	"Delay-Last-Failure: 2020-01-01T00:00:00Z", "Delay-Retry-At: 2099-01-01T00:00:00Z", "Delay-Error-Code: a", "Delay-Error: a",
	"Delay-Subject: a",
}

// smuggled are the ways to write a header so that somebody does not see it, as raw lines of a block.
var smuggled = []struct {
	name  string
	write func(line string) string
}{
	{"plain", func(l string) string { return l }},
	{"lower case", strings.ToLower},
	{"upper case", strings.ToUpper},
	{"odd case", func(l string) string {
		return strings.ToUpper(l[:2]) + strings.ToLower(l[2:5]) + strings.ToUpper(l[5:])
	}},
	{"bare LF in a value", func(l string) string { return "X-Harmless: 1\n" + l }},
	{"bare LF, lower case", func(l string) string { return "X-Harmless: 1\n" + strings.ToLower(l) }},
	{"two bare LF in a value", func(l string) string { return "X-Harmless: 1\nX-Other: 2\n" + l }},
	{"bare LF behind", func(l string) string { return l + "\nX-Harmless: 1" }},
	{"CR LF LF", func(l string) string { return "X-Harmless: 1\r\r\n" + l }},
	{"bare CR in a value", func(l string) string { return "X-Harmless: 1\r" + l }},
	{"twice", func(l string) string { return l + "\r\n" + l }},
	{"twice in two cases", func(l string) string { return l + "\r\n" + strings.ToLower(l) }},
	{"padded before", func(l string) string { return " " + l }},
	{"tab before", func(l string) string { return "\t" + l }},
	{"padded behind", func(l string) string { return strings.Replace(l, ":", " :", 1) }},
	{"tab behind", func(l string) string { return strings.Replace(l, ":", "\t:", 1) }},
	{"CR behind", func(l string) string { return strings.Replace(l, ":", "\r:", 1) }},
	{"no space", func(l string) string { return strings.Replace(l, ": ", ":", 1) }},
	{"no-break space", func(l string) string { return "\u00a0" + l }},
	{"folded", func(l string) string { return "X-Harmless: 1\r\n " + l }},
	{"colon first", func(l string) string { return ":" + l }},
	{"inside a value", func(l string) string { return "X-Harmless: " + l }},
	{"Kelvin sign", func(l string) string { return strings.NewReplacer("K", "\u212a", "k", "\u212a").Replace(l) }},
}

// TestReservedHeadersAreDropped: whatever a client writes, on its own subjects no reserved header comes out but ours,
// read by nats-server or by nats.go, and the client's own survive.
func TestReservedHeadersAreDropped(t *testing.T) {
	for _, how := range smuggled {
		for _, evil := range harmful {
			what := fmt.Sprintf("%s, %s", evil, how.name)
			b := block("X-Order: 42", how.write(evil), "Nats-Msg-Id: mine", "traceparent: 00-abc-def-01", "Delay-TTL: 90s")
			r, problem := policy.Parse(incoming("delay.1h.x", decode(t, b)))
			checkAllClean(t, what, r, problem)
			if problem != nil {
				t.Errorf("%s: %v", what, problem)
				continue
			}
			if got, want := r.Due.Sub(at).String(), "1h0m0s"; got != want {
				t.Errorf("%s: due after %s, want %s", what, got, want)
			}
			for kind, h := range map[string]message.Header{"hop": r.HopHeader(), "delivery": r.TargetHeader()} {
				h = wire(t, h)
				for name, want := range map[string]string{"X-Order": "42", "traceparent": "00-abc-def-01", "Delay-Id": r.ID} {
					if got := h[name]; len(got) != 1 || got[0] != want {
						t.Errorf("%s: %s has %s %q, want %q", what, kind, name, got, want)
					}
				}
			}
		}
	}
}

// TestMisspeltHeader: a Delay-* name that does not exist is refused, or a misspelt Delay-Until would make a message early.
// On our own subjects it may be a newer broker's, and is left out.
func TestMisspeltHeader(t *testing.T) {
	for _, evil := range []string{"Delay-Untill: 2030-01-01T00:00:00Z", "Delay-At: 1h", "Delay-: a", "Delay-Of-Tomorrow: a"} {
		for _, how := range smuggled {
			if how.name == "bare CR in a value" || how.name == "inside a value" || how.name == "colon first" {
				continue // no header at all
			}
			what := fmt.Sprintf("%s, %s", evil, how.name)
			line := how.write(evil)
			r, problem := policy.Parse(incoming("delay.1h.x", decode(t, block("X-Order: 42", line))))
			if problem == nil || problem.Code != message.BadOption {
				t.Errorf("%s: got %v, want bad_option", what, problem)
				continue
			}
			checkAllClean(t, what, r, problem)
		}
		hop := mustParse(t, "delay.1h.x").HopHeader()
		b := strings.TrimSuffix(encode(t, hop), "\r\n") + evil + "\r\n\r\n"
		r, problem := policy.Parse(incoming("delaysys.hop.1h.x", decode(t, b)))
		checkAllClean(t, evil+", on a hop", r, problem)
		if problem != nil {
			t.Errorf("%s on a hop: %v", evil, problem)
		}
	}
}

// TestReservedHeadersAreDroppedBetweenLanes: the same after a hop, with what another version may have let through.
func TestReservedHeadersAreDroppedBetweenLanes(t *testing.T) {
	hop := mustParse(t, "delay.1h.x", "X-Order: 42", "Delay-TTL: 90s").HopHeader()
	for _, how := range smuggled {
		for _, evil := range harmful {
			if strings.HasPrefix(evil, "Delay-") {
				continue // there we vouch for them
			}
			what := fmt.Sprintf("%s, %s, on a hop", evil, how.name)
			b := strings.TrimSuffix(encode(t, hop), "\r\n") + how.write(evil) + "\r\n\r\n"
			r, problem := policy.Parse(incoming("delaysys.hop.1h.x", decode(t, b)))
			if problem != nil {
				t.Errorf("%s: %v", what, problem)
			}
			checkAllClean(t, what, r, problem)
		}
	}
}

// TestInlineStatus: nats.go makes headers of what follows the version.
func TestInlineStatus(t *testing.T) {
	h := decode(t, "NATS/1.0 409 Consumer Deleted\r\nX-Order: 42\r\n\r\n")
	r, problem := policy.Parse(incoming("delay.1h.x", h))
	checkAllClean(t, "inline status", r, problem)
	if got, want := r.User, (message.Header{"X-Order": {"42"}}); !reflect.DeepEqual(got, want) {
		t.Errorf("headers %v, want %v", got, want)
	}
}

func TestUserHeadersSurvive(t *testing.T) {
	sent := []string{
		"traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "tracestate: a=b", "Content-Type: application/json",
		"X: 1", "X: 2", "x: 3", "Empty: ", "Colons: a: b: c", "Umlaut: grüße", "X-Nats-Msg-Id: kept", "Delayed: kept",
		"Natsy: kept", "Status-Code: 200", "Descriptions: kept", "KV-Operations: kept", "Accept-Encoding: gzip", "!#$%&'*+-.^_`|~: kept",
	}
	r := mustParse(t, "delay.1h.x", sent...)
	if got, want := r.User, header(sent...); !reflect.DeepEqual(got, want) {
		t.Errorf("headers %v, want %v", got, want)
	}
	for k, want := range header(sent...) {
		if got := wire(t, r.TargetHeader())[k]; !reflect.DeepEqual(got, want) {
			t.Errorf("delivered %s: %q, want %q", k, got, want)
		}
	}
}

// TestUnsafeHeaderNames: what nats.go refuses to encode would be tried again for ever.
func TestUnsafeHeaderNames(t *testing.T) {
	for c := range 256 {
		name := "X" + string([]byte{byte(c)}) + "Y"
		r, problem := policy.Parse(incoming("delay.1h.orders.x", message.Header{name: {"1"}, "X-Order": {"42"}}))
		checkAllClean(t, fmt.Sprintf("byte 0x%02x", c), r, problem) // encode compares with nats.go
		if problem == nil {
			continue
		}
		wantProblem(t, fmt.Sprintf("byte 0x%02x", c), problem, message.BadHeaders, "X", "letters")
		if got, want := r.User, (message.Header{"X-Order": {"42"}}); !reflect.DeepEqual(got, want) {
			t.Errorf("byte 0x%02x: the dead letter has %v, want %v", c, got, want)
		}
	}
	for range 20 { // whatever order the map has
		_, problem := parse("delay.1h.x", "b b: 1", "a a: 1", "c c: 1")
		wantProblem(t, "three unsafe names", problem, message.BadHeaders, `"a a"`)
	}
	_, problem := policy.Parse(incoming("delay.1h.x", message.Header{"": {"1"}}))
	wantProblem(t, "empty name", problem, message.BadHeaders, `""`)
}
