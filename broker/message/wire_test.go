package message_test

import (
	"fmt"
	"maps"
	"net/textproto"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/message"
)

// The helpers in this file encode and decode header blocks as clients, nats.go and nats-server do.

const day = 24 * time.Hour

// at is the time at which the server stored the messages of the tests.
var at = time.Date(2026, 11, 20, 9, 0, 0, 123456789, time.UTC)

var policy = message.Policy{Names: mustNames("delay"), MaxDelay: 366 * day}

func mustNames(prefix string) message.Names {
	names, err := message.NewNames(prefix)
	if err != nil {
		panic(err)
	}
	return names
}

func incoming(subject string, h message.Header) message.Incoming {
	return message.Incoming{Stream: "DELAY_30m", Sequence: 1234, At: at, Subject: subject, Header: h}
}

// parse parses a client's message with header lines such as "Name: value".
func parse(subject string, lines ...string) (message.Request, *message.Problem) {
	return policy.Parse(incoming(subject, header(lines...)))
}

func header(lines ...string) message.Header {
	var h message.Header
	for _, line := range lines {
		k, v, _ := strings.Cut(line, ": ")
		if h == nil {
			h = make(message.Header)
		}
		h[k] = append(h[k], v)
	}
	return h
}

func mustParse(t testing.TB, subject string, lines ...string) message.Request {
	t.Helper()
	r, problem := parse(subject, lines...)
	if problem != nil {
		t.Fatalf("parse %q with %q: %v", subject, lines, problem)
	}
	return r
}

// block returns a header block with the given lines.
func block(lines ...string) string {
	return "NATS/1.0\r\n" + strings.Join(lines, "\r\n") + "\r\n\r\n"
}

// encode returns h as nats.go encodes it, and fails if nats.go would refuse to encode h.
func encode(t testing.TB, h message.Header) string {
	t.Helper()
	b := "NATS/1.0\r\n"
	for _, k := range slices.Sorted(maps.Keys(h)) {
		for _, v := range h[k] {
			b += k + ": " + strings.NewReplacer("\r", " ", "\n", " ").Replace(textproto.TrimString(v)) + "\r\n"
		}
	}
	b += "\r\n"
	// nats.go exports no encoder. Msg.Size returns the size of the encoded block, or 0 if nats.go refuses to encode it.
	if got, want := len(b), (&nats.Msg{Header: nats.Header(h)}).Size(); got != want {
		t.Fatalf("encoded %d bytes, nats.go %d: %q", got, want, b)
	}
	return b
}

func decode(t testing.TB, block string) message.Header {
	t.Helper()
	h, err := nats.DecodeHeadersMsg([]byte(block))
	if err != nil {
		t.Fatalf("decode %q: %v", block, err)
	}
	return message.Header(h)
}

// wire returns h after nats.go has encoded and decoded it.
func wire(t testing.TB, h message.Header) message.Header {
	t.Helper()
	return decode(t, encode(t, h))
}

type line struct{ name, value string }

// lines returns the headers that a parser finds if it ends lines at eol: at CRLF as nats-server, or also at LF as
// nats.go. It trims the names and converts them to lower case, so that no spelling hides a reserved name.
func lines(block, eol string) []line {
	var all []line
	for _, l := range strings.Split(block, eol)[1:] {
		if name, value, ok := strings.Cut(l, ":"); ok {
			all = append(all, line{strings.ToLower(strings.TrimSpace(name)), strings.TrimSpace(value)})
		}
	}
	return all
}

func reservedName(name string) bool {
	return strings.HasPrefix(name, "nats-") || strings.HasPrefix(name, "nmqtt-") || strings.HasPrefix(name, "delay-") ||
		name == "status" || name == "description" || name == "kv-operation"
}

// The reserved names that each kind of header may have, in lower case.
var (
	targetSet = []string{"nats-msg-id", "nats-ttl", "delay-id", "delay-due", "delay-accepted", "delay-msg-id",
		"delay-attempts"}
	hopSet  = []string{"nats-msg-id", "delay-state", "delay-msg-id"}
	deadSet = []string{
		"nats-msg-id", "delay-id", "delay-due", "delay-accepted", "delay-msg-id", "delay-deliver", "delay-ttl",
		"delay-expires", "delay-attempts", "delay-first-failure", "delay-last-failure", "delay-error-code", "delay-error",
		"delay-subject",
		"delay-format", "delay-hop",
	}
)

// checkClean fails if either parser finds in h a reserved name that is not in set or is duplicate, or a Nats-Msg-Id or
// Nats-TTL with another value.
func checkClean(t testing.TB, what string, h message.Header, set []string, natsMsgID, natsTTL string) {
	t.Helper()
	b := encode(t, h)
	for _, eol := range []string{"\r\n", "\n"} {
		seen := make(map[string]bool)
		for _, l := range lines(b, eol) {
			switch {
			case !reservedName(l.name):
				continue
			case !slices.Contains(set, l.name):
				t.Errorf("%s, lines ended by %q: the header has %s", what, eol, l.name)
			case seen[l.name]:
				t.Errorf("%s, lines ended by %q: %s twice", what, eol, l.name)
			case l.name == "nats-msg-id" && l.value != natsMsgID:
				t.Errorf("%s, lines ended by %q: Nats-Msg-Id %q, want %q", what, eol, l.value, natsMsgID)
			case l.name == "nats-ttl" && l.value != natsTTL:
				t.Errorf("%s, lines ended by %q: Nats-TTL %q, want %q", what, eol, l.value, natsTTL)
			}
			seen[l.name] = true
		}
		if !seen["nats-msg-id"] {
			t.Errorf("%s, lines ended by %q: no Nats-Msg-Id", what, eol)
		}
	}
}

// checkAllClean checks the headers of all messages that the broker can make of a request.
func checkAllClean(t testing.TB, what string, r message.Request, problem *message.Problem) {
	t.Helper()
	checkClean(t, what+": dead letter", r.DeadHeader(orProblem(problem)), deadSet, r.DeadMsgID(), "")
	if problem == nil {
		checkClean(t, what+": hop", r.HopHeader(), hopSet, r.NatsMsgID(r.Hop+1), "")
		checkClean(t, what+": delivery", r.TargetHeader(), targetSet, r.ID, r.TTL)
	}
}

func orProblem(p *message.Problem) *message.Problem {
	if p == nil {
		return message.Problemf(message.Undelivered, "refused")
	}
	return p
}

// checkProblem checks the properties of every problem.
func checkProblem(t testing.TB, what string, p *message.Problem) {
	t.Helper()
	if n := len(p.Sentence); n < 20 || n > 600 {
		t.Errorf("%s: the sentence has %d bytes, want 20 to 600", what, n)
	}
	if p.Sentence != strings.ToValidUTF8(p.Sentence, "") {
		t.Errorf("%s: the sentence is not UTF-8: %q", what, p.Sentence)
	}
	for _, r := range p.Sentence {
		if r < ' ' || r == 0x7f {
			t.Errorf("%s: the sentence contains the control character %q: %q", what, r, p.Sentence)
		}
	}
	if got, want := p.Error(), fmt.Sprintf("%s: %s", p.Code, p.Sentence); got != want {
		t.Errorf("%s: Error() = %q, want %q", what, got, want)
	}
}

// wantProblem fails unless p has the code, and its sentence contains all hints.
func wantProblem(t testing.TB, what string, p *message.Problem, code message.Code, hints ...string) {
	t.Helper()
	if p == nil {
		t.Errorf("%s: no problem, want %s", what, code)
		return
	}
	checkProblem(t, what, p)
	if strings.Contains(p.Sentence, "%!") {
		t.Errorf("%s: badly formatted: %s", what, p.Sentence)
	}
	if got, want := p.Code, code; got != want {
		t.Errorf("%s: code %s, want %s: %s", what, got, want, p.Sentence)
	}
	for _, hint := range hints {
		if !strings.Contains(p.Sentence, hint) {
			t.Errorf("%s: the sentence lacks %q: %s", what, hint, p.Sentence)
		}
	}
}
