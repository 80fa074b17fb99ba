package message_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"delaybroker/broker/message"
)

// reserve is the part of max_payload that the levels keep free, in bytes (LevelReserve in broker/streams/provision).
// The dead letter of any message of a level must fit into max_payload. A hop of any message of the intake must fit,
// too.
const reserve = 4096

func TestHeaderBounds(t *testing.T) {
	many := func(n int) (all []string) {
		for i := range n {
			all = append(all, fmt.Sprintf("X-%d: 1", i))
		}
		return all
	}
	same := func(n int) (all []string) {
		for range n {
			all = append(all, "X: 1")
		}
		return all
	}
	long := func(n int) string { return "X: " + strings.Repeat("a", n-len("X: \r\n")) }
	tests := []struct {
		what  string
		lines []string
		ok    bool
	}{
		{"64 names", many(64), true},
		{"65 names", many(65), false},
		{"one name 64 times", same(64), true},
		{"one name 65 times", same(65), false},
		{"64 names, and headers that are not passed on",
			append(many(64), "Delay-TTL: 5s", "Nats-Rollup: all", "Delay-Id: a", "Nats-Msg-Id: 1"), true},
		{"8 KiB", []string{long(8192)}, true},
		{"8 KiB and a byte", []string{long(8193)}, false},
		{"8 KiB of a message id", []string{"Nats-Msg-Id: " + strings.Repeat("a", 8192)}, true},
		{"a byte more of a message id", []string{"Nats-Msg-Id: " + strings.Repeat("a", 8193)}, false},
		{"8 KiB together", []string{long(4096), "Nats-Msg-Id: " + strings.Repeat("a", 4096)}, true},
		{"a byte more together", []string{long(4096), "Nats-Msg-Id: " + strings.Repeat("a", 4097)}, false},
		{"32 KiB of a dropped header", []string{"Nats-Request-Info: " + strings.Repeat("a", 32<<10)}, true},
		{"65,000 bytes", []string{long(65000)}, false},
		{"65,000 bytes and a name that is unsafe", []string{long(65000), "un safe: 1"}, false},
	}
	for _, tt := range tests {
		for range 4 { // the result must not depend on the order of the map
			r, problem := parse("delay.1h.x", tt.lines...)
			if got, want := problem == nil, tt.ok; got != want {
				t.Fatalf("%s: accepted %t, want %t: %v", tt.what, got, want, problem)
			}
			if !tt.ok {
				wantProblem(t, tt.what, problem, message.BadHeaders, "64 headers with 8192 bytes in total")
			}
			// nats-server stores no header block above 65,535 bytes, so the dead letter must not have all headers.
			if got, want := len(encode(t, r.DeadHeader(orProblem(problem)))), 8192+reserve; got > want {
				t.Fatalf("%s: the dead letter's headers have %d bytes, want at most %d", tt.what, got, want)
			}
			if !tt.ok {
				continue
			}
			// The bounds must also allow the message between lanes.
			if _, problem = policy.Parse(incoming("delaysys.hop.1h.x", wire(t, r.HopHeader()))); problem != nil {
				t.Fatalf("%s: after a hop: %v", tt.what, problem)
			}
		}
	}
}

// TestAddedHeadersFitTheReserve: a message with the longest target, subject, sentence, stream name and times does not
// grow by more than the reserve. Its headers are in a short notation, which grows when nats.go writes them again.
func TestAddedHeadersFitTheReserve(t *testing.T) {
	names := mustNames("a23456789-123456")
	p := message.Policy{Names: names}
	target := strings.Repeat("t", 256)
	raw := []string{"Nats-Msg-Id:1", "Delay-TTL:36500d", "Delay-Expires:9999-12-31T23:59:59.999999999Z",
		"Delay-Deliver:stream", "Delay-Max-Attempts:2147483647"}
	var tiny strings.Builder
	for i := range 64 {
		fmt.Fprintf(&tiny, "%c:\n", 'A'+i%26) // three bytes, and five when nats.go writes them again
	}
	b := "NATS/1.0\n" + tiny.String() + strings.Join(raw, "\n") + "\n\n"
	in := incoming(names.Prefix()+".365d."+target, decode(t, b))
	in.Stream, in.Sequence = names.RetryStream("365d23h59m59s999ms"), 1<<64-1
	r, problem := p.Parse(in)
	if problem != nil {
		t.Fatal(problem)
	}
	late := time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.UTC)
	r = r.WithRefusal(late, late, "").WithRefusal(late, late, strings.Repeat("r", 999)).
		WithDeferral(late, strings.Repeat("d", 999))
	r.Hop, r.Attempts, r.AllowedRefusals = 1<<62, 1<<62, 1<<62
	seal := func(h message.Header) message.Header {
		keysOf(secretOne).SealMessage("delaysys.x", h, nil)
		return h
	}
	if got := len(encode(t, seal(r.HopHeader()))) - len(b); got > reserve {
		t.Errorf("a hop adds %d bytes, want at most %d", got, reserve)
	} else {
		t.Logf("a hop adds %d bytes", got)
	}
	worst := message.Problemf(message.UntilEarly, "%s", strings.Repeat("s", 9999))
	h := seal(r.DeadHeader(worst))
	h["Nats-Msg-Id"][0] += "+01234567890123456789012345" // as publish.renew in package engine does after a duplicate
	if got := len(encode(t, h)) - len(b); got > reserve {
		t.Errorf("a dead letter adds %d bytes, want at most %d", got, reserve)
	} else {
		t.Logf("a dead letter adds %d bytes", got)
	}
}

func TestSentencesAreBounded(t *testing.T) {
	for _, s := range []string{
		strings.Repeat("é", 1000), "a" + strings.Repeat("é", 1000), strings.Repeat("\xff", 1000),
		strings.Repeat("\x00\r\n\x1b\x7f", 500),
		strings.Repeat("😀", 500), strings.Repeat("%s", 500),
	} {
		p := message.Problemf(message.Undelivered, "the target refused it: %s", s)
		checkProblem(t, fmt.Sprintf("%.20q…", s), p)
		if len(p.Sentence) < 595 {
			t.Errorf("%.20q…: truncated to %d bytes, want at least 595", s, len(p.Sentence))
		}
	}
}
