package message_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"delaybroker/broker/message"
	"delaybroker/test/poison"
)

// TestReservedHeadersAreDropped: a client writes reserved headers on its own subjects, in many notations. Neither
// nats-server nor nats.go finds them in a published message, except those that the broker writes. The client's own
// headers are passed on.
func TestReservedHeadersAreDropped(t *testing.T) {
	for _, disguise := range poison.Disguises {
		for _, evil := range poison.Headers {
			what := fmt.Sprintf("%s, %s", evil, disguise.Name)
			b := block("X-Order: 42", disguise.Lines(evil), "Nats-Msg-Id: mine", "traceparent: 00-abc-def-01", "Delay-TTL: 90s")
			r, problem := policy.Parse(incoming("delay.1h.x", decode(t, b)))
			checkAllClean(t, what, r, problem)
			if problem != nil {
				t.Errorf("%s: got the problem %v, want none", what, problem)
				continue
			}
			if got, want := r.Due.Sub(at).String(), "1h0m0s"; got != want {
				t.Errorf("%s: due after %s, want %s", what, got, want)
			}
			for kind, h := range map[string]message.Header{"hop": r.HopHeader(), "delivery": r.TargetHeader()} {
				h = wire(t, h)
				for name, want := range map[string]string{"X-Order": "42", "traceparent": "00-abc-def-01"} {
					if got := h[name]; len(got) != 1 || got[0] != want {
						t.Errorf("%s: %s has %s %q, want %q", what, kind, name, got, want)
					}
				}
			}
		}
	}
}

// TestMisspeltHeader: a client's unknown Delay-* header is a problem, because a message with a misspelt Delay-Until
// would be early. On the broker's own subjects, an unknown header may come from a newer broker, and is dropped.
func TestMisspeltHeader(t *testing.T) {
	for _, evil := range []string{"Delay-Untill: 2030-01-01T00:00:00Z", "Delay-At: 1h", "Delay-: a",
		"Delay-Of-Tomorrow: a"} {
		for _, disguise := range poison.Disguises {
			if disguise.Name == "bare CR in a value" || disguise.Name == "inside a value" || disguise.Name == "colon first" {
				continue // nats.go finds no header in this notation
			}
			what := fmt.Sprintf("%s, %s", evil, disguise.Name)
			line := disguise.Lines(evil)
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
			t.Errorf("%s on a hop: got the problem %v, want none", evil, problem)
		}
	}
}

// TestReservedHeadersAreDroppedBetweenLanes: reserved headers are also dropped from a message between lanes, since
// another version may have passed them on.
func TestReservedHeadersAreDroppedBetweenLanes(t *testing.T) {
	hop := mustParse(t, "delay.1h.x", "X-Order: 42", "Delay-TTL: 90s").HopHeader()
	for _, disguise := range poison.Disguises {
		for _, evil := range poison.Headers {
			if strings.HasPrefix(evil, "Delay-") {
				continue // the broker writes these headers itself
			}
			what := fmt.Sprintf("%s, %s, on a hop", evil, disguise.Name)
			b := strings.TrimSuffix(encode(t, hop), "\r\n") + disguise.Lines(evil) + "\r\n\r\n"
			r, problem := policy.Parse(incoming("delaysys.hop.1h.x", decode(t, b)))
			if problem != nil {
				t.Errorf("%s: got the problem %v, want none", what, problem)
			}
			checkAllClean(t, what, r, problem)
		}
	}
}

// TestInlineStatus: the headers that nats.go makes of the text after "NATS/1.0" are dropped.
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
		"traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "tracestate: a=b",
		"Content-Type: application/json", "X: 1", "X: 2", "x: 3", "Empty: ", "Colons: a: b: c", "Umlaut: grüße",
		"X-Nats-Msg-Id: kept", "Delayed: kept",
		"Natsy: kept", "Status-Code: 200", "Descriptions: kept", "KV-Operations: kept", "Accept-Encoding: gzip",
		"!#$%&'*+-.^_`|~: kept",
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

// TestUnsafeHeaderNames: a header that nats.go refuses to encode is a problem. Otherwise, the broker would repeat the
// publish of the message forever.
func TestUnsafeHeaderNames(t *testing.T) {
	for c := range 256 {
		name := "X" + string([]byte{byte(c)}) + "Y"
		r, problem := policy.Parse(incoming("delay.1h.orders.x", message.Header{name: {"1"}, "X-Order": {"42"}}))
		checkAllClean(t, fmt.Sprintf("byte 0x%02x", c), r, problem)
		if problem == nil {
			continue
		}
		wantProblem(t, fmt.Sprintf("byte 0x%02x", c), problem, message.BadHeaders, "X", "letters")
		if got, want := r.User, (message.Header{"X-Order": {"42"}}); !reflect.DeepEqual(got, want) {
			t.Errorf("byte 0x%02x: the dead letter has %v, want %v", c, got, want)
		}
	}
	for range 20 { // the result must not depend on the order of the map
		_, problem := parse("delay.1h.x", "b b: 1", "a a: 1", "c c: 1")
		wantProblem(t, "three unsafe names", problem, message.BadHeaders, `"a a"`)
	}
	_, problem := policy.Parse(incoming("delay.1h.x", message.Header{"": {"1"}}))
	wantProblem(t, "empty name", problem, message.BadHeaders, `""`)
}
