package message_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/message"
	"delaybroker/test/poison"
)

// FuzzInternalHeaders parses any header block on the broker's own subjects, alone or after valid state headers. Another
// version of the broker, or a user with too many permissions, may publish such a block.
func FuzzInternalHeaders(f *testing.F) {
	for i, disguise := range poison.Disguises {
		f.Add([]byte(disguise.Lines(poison.Headers[i%len(poison.Headers)])+"\r\nX-Order: 42\r\n"), uint8(i))
	}
	for i, line := range []string{
		"Delay-Expires: 2026-11-20T10:00:00Z\r\nNats-Rollup: all", "Delay-TTL: 5\r\nNats-TTL: 1", "Delay-TTL: 1\rNats-TTL: 9",
		"Delay-Deliver: stream",
		"Delay-Attempts: 3\r\nDelay-First-Failure: 2026-11-20T09:00:00Z\r\nDelay-Last-Failure: " +
			"2026-11-20T09:30:00Z\r\nDelay-Retry-At: 2026-11-20T09:31:00Z",
		"Delay-Msg-Id: a\rb", "Delay-Attempts: 99999999999999999999", "Delay-Retry-At: 9999-12-31T23:59:59-23:59",
		"Delay-Format: 2",
	} {
		f.Add([]byte(line+"\r\n"), uint8(i))
	}
	f.Fuzz(func(t *testing.T, lines []byte, choice uint8) {
		b := "NATS/1.0\r\n"
		if choice&1 == 0 {
			b = strings.TrimSuffix(encode(t, mustParse(t, "delay.1h.x").HopHeader()), "\r\n")
		}
		h, err := nats.DecodeHeadersMsg([]byte(b + string(lines) + "\r\n"))
		if err != nil {
			return
		}
		subject := []string{policy.Names.Hop("1h", "x"), policy.Names.Retry("30s", "x")}[choice>>1&1]
		r, problem := policy.Parse(incoming(subject, message.Header(h)))
		checkAllClean(t, "block", r, problem)
		if problem != nil {
			checkProblem(t, "block", problem)
			return
		}
		// The first encoding trims the values. Every further hop leaves them unchanged.
		second, problem := policy.Parse(incoming(subject, wire(t, r.HopHeader())))
		if problem != nil {
			t.Fatalf("after a hop: %v", problem)
		}
		third, problem := policy.Parse(incoming(subject, wire(t, second.HopHeader())))
		if problem != nil {
			t.Fatalf("after two hops: %v", problem)
		}
		second.Hop++
		checkSame(t, "after two hops", third, second)
	})
}

// FuzzHeaderPair parses two headers whose names and values have any bytes, because another decoder might return them.
func FuzzHeaderPair(f *testing.F) {
	for i, line := range poison.Headers {
		name, value, _ := strings.Cut(line, ": ")
		f.Add(name, value+"\r\nNats-Rollup: all", "X\nNats-Rollup", "all", uint8(i))
		f.Add("X-Order\r\n"+name, value, " "+strings.ToUpper(name)+"\t", "\n"+line, uint8(i))
	}
	state := mustParse(f, "delay.1h.x", "Delay-TTL: 5s", "Delay-Expires: 1h", "Nats-Msg-Id: a").HopHeader()
	for i, name := range slices.Sorted(maps.Keys(state)) {
		f.Add(name, "2026-11-20T10:00:00Z\nNats-Rollup: all", "Delay-Until", "2026-11-21T10:00:00Z\r\nStatus: 409",
			uint8(4+i))
	}
	f.Fuzz(func(t *testing.T, name1, value1, name2, value2 string, choice uint8) {
		h := message.Header{name1: {value1, value2}, name2: {value2}}
		subject := []string{"delay.1h.x", "delayin.1h.x", "delayat.1795176000.x", "delay.1h", policy.Names.Hop("1h", "x"),
			policy.Names.Retry("30s", "x")}[choice%6]
		if strings.HasPrefix(subject, "delaysys") {
			for name, vs := range mustParse(t, "delay.1h.x").HopHeader() {
				if _, given := h[name]; !given {
					h[name] = vs
				}
			}
			for _, name := range []string{name1, name2} {
				h[name] = h[name][:1] // a duplicate header is refused before its value is parsed
			}
		}
		open := policy
		open.HeaderTargets = []string{">"}
		r, problem := open.Parse(incoming(subject, h))
		checkAllClean(t, "pair", r, problem)
		if problem != nil {
			checkProblem(t, "pair", problem)
		}
	})
}
