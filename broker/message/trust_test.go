package message_test

import (
	"maps"
	"slices"
	"testing"

	"delaybroker/broker/message"
)

// TestTrust checks which records count.
func TestTrust(t *testing.T) {
	const subject = "delaysys.pauses"
	body := []byte("body")
	ours, gone := keysOf(secretOne), keysOf(secretTwo)
	note := func(seal string) message.Record { return message.Note{Subject: subject, Body: body, Seal: seal} }
	sealed := func(k *message.Keys) message.Incoming {
		h := message.Header{}
		k.SealMessage(subject, h, body)
		return message.Incoming{Subject: subject, At: at, Header: h, Data: body}
	}
	unsealed := message.Incoming{Subject: subject, At: at, Data: body}
	unread := sealed(gone)
	unread.HeadersOnly, unread.Data = true, nil
	for _, tt := range []struct {
		what   string
		keys   *message.Keys
		record message.Record
		want   bool
	}{
		{"a note", ours, note(ours.Seal(subject, body)), true},
		{"a note with an unknown key", ours, note(gone.Seal(subject, body)), false},
		{"a note with another's seal", ours, note(ours.Seal(subject, []byte("other"))), false},
		{"a note without a seal", ours, note(""), false},
		{"a note without keys", nil, note(gone.Seal(subject, body)), true},
		{"a message", ours, sealed(ours), true},
		{"a message with an unknown key", ours, sealed(gone), false},
		{"a message without its body", ours, unread, true},
		{"a message without a seal", ours, unsealed, false},
		{"no seal and no keys", nil, unsealed, true},
	} {
		if got := tt.keys.Trusts(tt.record); got != tt.want {
			t.Errorf("%s: trusted %t, want %t", tt.what, got, tt.want)
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

// TestBadInternal: a message below delaysys without the state of a message between lanes, or with a forbidden target,
// is a problem.
func TestBadInternal(t *testing.T) {
	good := wire(t, full(t).HopHeader())
	state := good["Delay-State"][0]
	for what, values := range map[string][]string{"missing": nil, "twice": {state, state}} {
		h := maps.Clone(good)
		h["Delay-State"] = values
		in := incoming("delaysys.hop.1h.orders.expire", h)
		in.Sequence++ // so that it has an id of its own
		got, problem := policy.Parse(in)
		wantProblem(t, what, problem, message.BadInternal, "Delay-State", "only the broker may publish")
		if got.ID == full(t).ID {
			t.Errorf("%s: the request has the claimed id", what)
		}
		checkAllClean(t, what, got, problem)
	}
	_, problem := policy.Parse(incoming("delaysys.hop.1h.$SYS.x", good))
	wantProblem(t, "a forbidden target", problem, message.BadTarget)
	_, problem = policy.Parse(incoming("delaysys.hop.1h", good))
	wantProblem(t, "no target", problem, message.BadTarget)
}

// TestNewerFormat: for a message in a newer format, the problem is NewerFormat, whatever follows the number.
func TestNewerFormat(t *testing.T) {
	for _, state := range []string{"2", "2 ", "2 !", "3 in a new notation"} {
		_, problem := policy.Parse(incoming("delaysys.hop.1h.x", header("Delay-State: "+state)))
		wantProblem(t, state, problem, message.NewerFormat, state[:1], "1")
	}
	if _, problem := parse("delay.1h.x", "Delay-State: 2"); problem != nil {
		t.Errorf("Delay-State on a client's subject: got the problem %v, want none", problem)
	}
}
