package entry_test

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/message"
	"delaybroker/broker/timer/entry"
)

const (
	secretOne = "the first secret of the tests"
	secretTwo = "the second secret of the tests"
)

// storedAt is when the server stored the entries of the tests.
var storedAt = time.Date(2026, 11, 20, 9, 0, 0, 123456789, time.UTC)

var policy = message.Policy{Names: mustNames("delay"), MaxDelay: 366 * 24 * time.Hour}

func mustNames(prefix string) message.Names {
	names, err := message.NewNames(prefix)
	if err != nil {
		panic(err)
	}
	return names
}

func keysOf(secrets ...string) *message.Keys {
	return message.NewKeys(secrets)
}

// policyOf returns the policy of a broker with keys.
func policyOf(k *message.Keys) message.Policy {
	p := policy
	p.Keys = k
	return p
}

// header returns a header with the given lines, each of the form "Name: value".
func header(lines ...string) message.Header {
	h := make(message.Header)
	for _, line := range lines {
		k, v, _ := strings.Cut(line, ": ")
		h[k] = append(h[k], v)
	}
	return h
}

// block returns a header block with the given lines.
func block(lines ...string) string { return "NATS/1.0\r\n" + strings.Join(lines, "\r\n") + "\r\n\r\n" }

// wire returns a header as it is read after it was published.
func wire(t testing.TB, h message.Header) message.Header {
	t.Helper()
	if (&nats.Msg{Header: nats.Header(h)}).Size() == 0 {
		t.Fatalf("nats.go cannot write %q", h)
	}
	read := make(message.Header, len(h))
	for k, values := range h {
		for _, v := range values {
			read[k] = append(read[k], strings.TrimSpace(strings.NewReplacer("\r", " ", "\n", " ").Replace(v)))
		}
	}
	return read
}

// markerOf returns a marker as it is read from a level.
func markerOf(t testing.TB, k *message.Keys, m entry.Marker, level string) message.Incoming {
	t.Helper()
	subject, h := policy.Names.Marker(level), m.Header()
	k.SealMessage(subject, h, nil)
	return message.Incoming{Stream: "DELAY_" + level, Sequence: 7, At: storedAt, Subject: subject, Header: wire(t, h)}
}

// wantProblem fails unless p has the code, and a sentence that fits into a header and contains all hints.
func wantProblem(t testing.TB, what string, p *message.Problem, code message.Code, hints ...string) {
	t.Helper()
	if p == nil || p.Code != code {
		t.Errorf("%s: %v, want %s", what, p, code)
		return
	}
	if n := len(p.Sentence); n < 20 || n > 600 || strings.ContainsFunc(p.Sentence, func(r rune) bool { return r < ' ' }) {
		t.Errorf("%s: a sentence of %d bytes: %q", what, n, p.Sentence)
	}
	for _, hint := range hints {
		if !strings.Contains(p.Sentence, hint) {
			t.Errorf("%s: the sentence lacks %q: %s", what, hint, p.Sentence)
		}
	}
}

// checkAccepted checks the properties of every accepted set.
func checkAccepted(t testing.TB, p message.Policy, subject string, r message.Request) {
	t.Helper()
	if problem := p.CheckTarget(r.Target); problem != nil {
		t.Errorf("%q: target %q: %v", subject, r.Target, problem)
	}
	if r.Due.Before(r.Accepted) || !r.Expires.IsZero() && r.Expires.Before(r.Due) {
		t.Errorf("%q: accepted %v, due %v, expires %v", subject, r.Accepted, r.Due, r.Expires)
	}
	if _, err := message.ParseID(r.ID); err != nil {
		t.Errorf("%q: id: %v", subject, err)
	}
}
