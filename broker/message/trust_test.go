package message_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"delaybroker/broker/message"
)

// TestTrust checks which records count under TrustSealed and under TrustLegacy. The time of a message is its timestamp,
// and the time of a note is the time of the call.
func TestTrust(t *testing.T) {
	const subject = "delaysys.pauses"
	body := []byte("body")
	ours, gone := keysOf(secretOne), keysOf(secretTwo)
	later := message.NewKeys([]string{secretOne}, time.Now().Add(time.Hour)) // older brokers still write without a seal
	note := func(seal string) message.Record { return message.Note{Subject: subject, Body: body, Seal: seal} }
	sealed := func(k *message.Keys) message.Incoming {
		h := message.Header{}
		k.SealMessage(subject, h, body, at)
		return message.Incoming{Subject: subject, At: at, Header: h, Data: body}
	}
	unsealed := message.Incoming{Subject: subject, At: at, Data: body}
	old := message.Incoming{Subject: subject, At: sealedAt.Add(-1), Data: body}
	unread := sealed(gone)
	unread.HeadersOnly, unread.Data = true, nil
	for _, tt := range []struct {
		what           string
		keys           *message.Keys
		record         message.Record
		sealed, legacy bool
	}{
		{"a note", ours, note(ours.Seal(subject, body)), true, true},
		{"a note with an unknown key", ours, note(gone.Seal(subject, body)), false, false},
		{"a note with another's seal", ours, note(ours.Seal(subject, []byte("other"))), false, false},
		{"a note without a seal", ours, note(""), false, false},
		{"a note without a seal during an upgrade", later, note(""), false, true},
		{"a note with an unknown key during an upgrade", later, note(gone.Seal(subject, body)), false, false},
		{"a note without keys", nil, note(gone.Seal(subject, body)), true, true},
		{"a message", ours, sealed(ours), true, true},
		{"a message with an unknown key", ours, sealed(gone), false, false},
		{"a message without its body", ours, unread, true, true},
		{"a message without a seal", ours, unsealed, false, false},
		{"a message without a seal from before the start of sealing", ours, old, false, true},
		{"no seal and no keys", nil, unsealed, true, true},
	} {
		if got := tt.keys.Trusts(tt.record, message.TrustSealed); got != tt.sealed {
			t.Errorf("%s, TrustSealed: trusted %t, want %t", tt.what, got, tt.sealed)
		}
		if got := tt.keys.Trusts(tt.record, message.TrustLegacy); got != tt.legacy {
			t.Errorf("%s, TrustLegacy: trusted %t, want %t", tt.what, got, tt.legacy)
		}
	}
}

// TestKeyUse: UseOf distinguishes the first key, other keys of the broker, and unknown keys. IDs has the keys' order.
func TestKeyUse(t *testing.T) {
	both, gone := keysOf(secretTwo, secretOne), keysOf("a third secret of sixteen bytes")
	ids := both.IDs()
	if len(ids) != 2 || !slices.Equal(keysOf(secretOne).IDs(), ids[1:]) {
		t.Fatalf("the ids are %q, want two, and the second that of secretOne", ids)
	}
	for seal, want := range map[string]message.KeyUse{
		both.Seal("x", nil): message.FirstKey, keysOf(secretOne).Seal("x", nil): message.LaterKey,
		gone.Seal("x", nil): message.OtherKey, "": message.NoKey,
	} {
		if got := both.UseOf(seal); got != want {
			t.Errorf("the key of %q is used as %v, want %v", seal, got, want)
		}
	}
	if got := (*message.Keys)(nil).UseOf(gone.Seal("x", nil)); got != message.NoKey {
		t.Errorf("without keys, a key is used as %v, want NoKey", got)
	}
}

// TestBadInternal: without keys, a message below delaysys with state headers that no broker writes is a problem.
func TestBadInternal(t *testing.T) {
	r := full(t)
	good := wire(t, r.HopHeader())
	subject := policy.Names.Hop("1h", r.Target)
	if _, problem := policy.Parse(incoming(subject, good)); problem != nil {
		t.Fatalf("the valid header: got the problem %v, want none", problem)
	}
	bad := map[string][]string{ // nil is a missing header
		"Delay-Id":            {"", "nonsense", "DELAY_1h-1", "DELAY_1h-x-1", "DELAY_1h-01-1", "a.b-1-1"},
		"Delay-Due":           {"", "soon", "1h", "2026-11-20T12:00:00"},
		"Delay-Accepted":      {"", "soon"},
		"Delay-Format":        {"", "0", "-1", "one"},
		"Delay-Hop":           {"", "0", "-1", "1.5", "99999999999999999999"},
		"Delay-Attempts":      {"0", "-1", "many"},
		"Delay-Expires":       {"soon", "10m"},
		"Delay-Retry-At":      {"soon"},
		"Delay-First-Failure": {"soon"},
		"Delay-Last-Failure":  {"soon"},
		"Delay-Deliver":       {"twice", "Core", "core x"},
	}
	check := func(name string, h message.Header) {
		t.Helper()
		in := incoming(subject, h)
		in.Sequence++ // so that it has an id of its own
		got, problem := policy.Parse(in)
		wantProblem(t, name, problem, message.BadInternal, name, "only the broker may publish")
		if got.ID == r.ID {
			t.Errorf("%s: the request has the claimed id", name)
		}
		checkAllClean(t, name, got, problem)
	}
	for name, values := range bad {
		for _, value := range values {
			h := maps.Clone(good)
			if h[name] = []string{value}; value == "" {
				delete(h, name)
			}
			check(name, h)
		}
		h := maps.Clone(good)
		h[strings.ToLower(name)] = h[name]
		check(name, h)
	}
	_, problem := policy.Parse(incoming(subject, nil))
	wantProblem(t, "no headers", problem, message.BadInternal)
	_, problem = policy.Parse(incoming("delaysys.hop.1h.$SYS.x", good))
	wantProblem(t, "a forbidden target", problem, message.BadTarget)
	_, problem = policy.Parse(incoming("delaysys.hop.1h", good))
	wantProblem(t, "no target", problem, message.BadTarget)
}

// TestNewerFormat: for a message in a newer format, the problem is NewerFormat, even if all other headers are invalid.
func TestNewerFormat(t *testing.T) {
	for _, h := range []message.Header{header("Delay-Format: 5"),
		header("Delay-Format: 5", "Delay-Due: in a new notation", "Delay-Hop: a")} {
		_, problem := policy.Parse(incoming("delaysys.hop.1h.x", h))
		wantProblem(t, "format 5", problem, message.NewerFormat, "5", "4")
	}
	if _, problem := parse("delay.1h.x", "Delay-Format: 5"); problem != nil {
		t.Errorf("Delay-Format on a client's subject: got the problem %v, want none", problem)
	}
}
