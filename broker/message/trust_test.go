package message_test

import (
	"slices"
	"testing"
	"time"

	"delaybroker/broker/message"
)

// TestTrust: which records count by each rule. Messages and notes differ in one thing: a note has no time, so the clock
// of its reader counts.
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
	bare := message.Incoming{Subject: subject, At: at, Data: body}
	old := message.Incoming{Subject: subject, At: sealedAt.Add(-1), Data: body}
	unread := sealed(gone)
	unread.BodyLeft, unread.Data = true, nil
	for _, tt := range []struct {
		what          string
		keys          *message.Keys
		record        message.Record
		always, since bool
	}{
		{"a note", ours, note(ours.Seal(subject, body)), true, true},
		{"a note with an unknown key", ours, note(gone.Seal(subject, body)), false, false},
		{"a note with another's seal", ours, note(ours.Seal(subject, []byte("other"))), false, false},
		{"a bare note", ours, note(""), false, false},
		{"a bare note during an upgrade", later, note(""), false, true},
		{"a note with an unknown key during an upgrade", later, note(gone.Seal(subject, body)), false, false},
		{"a note without keys", nil, note(gone.Seal(subject, body)), true, true},
		{"a message", ours, sealed(ours), true, true},
		{"a message with an unknown key", ours, sealed(gone), false, false},
		{"a message of which the body was left", ours, unread, true, true},
		{"a bare message", ours, bare, false, false},
		{"a bare message from before seals", ours, old, false, true},
		{"a bare message without keys", nil, bare, true, true},
	} {
		if got := tt.keys.Trusts(tt.record, message.SealedAlways); got != tt.always {
			t.Errorf("%s, sealed always: %t", tt.what, got)
		}
		if got := tt.keys.Trusts(tt.record, message.SealedSince); got != tt.since {
			t.Errorf("%s, sealed since: %t", tt.what, got)
		}
	}
}

// TestKeyUse: a seal says which key made it, and nobody learns more from it than from the seal.
func TestKeyUse(t *testing.T) {
	both, gone := keysOf(secretTwo, secretOne), keysOf("a third secret of sixteen bytes")
	ids := both.IDs()
	if len(ids) != 2 || !slices.Equal(keysOf(secretOne).IDs(), ids[1:]) {
		t.Fatalf("the ids are %q", ids)
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
		t.Errorf("without keys a key is used as %v", got)
	}
}
