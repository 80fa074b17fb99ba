package message_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"delaybroker/broker/message"
)

const (
	secretOne = "the first secret of the tests"
	secretTwo = "the second secret of the tests"
)

// sealedAt is the start of sealing for the keys of the tests, an hour before the messages of the tests.
var sealedAt = at.Add(-time.Hour)

func keysOf(secrets ...string) *message.Keys { return message.NewKeys(secrets, sealedAt) }

// sealingPolicy returns the policy of a broker with keys.
func sealingPolicy(k *message.Keys) message.Policy {
	p := policy
	p.Keys = k
	return p
}

// hopOf returns a message between lanes, as the next lane reads it.
func hopOf(t testing.TB, k *message.Keys, r message.Request, subject, body string) message.Incoming {
	t.Helper()
	h := r.HopHeader()
	k.SealMessage(subject, h, []byte(body), at)
	in := incoming(subject, wire(t, h))
	in.Stream, in.Sequence, in.Data = "DELAY_2h", 7, []byte(body)
	return in
}

// TestSealSurvivesTheWire: a seal is valid after nats.go has encoded and decoded the message, over several hops and
// with any headers of a client.
func TestSealSurvivesTheWire(t *testing.T) {
	k := keysOf(secretOne)
	p := sealingPolicy(k)
	for what, r := range map[string]message.Request{
		"plain": mustParse(t, "delay.1h.orders.expire"),
		"full":  full(t),
		"paced": paced(mustParse(t, "delay.1h.x")),
		"odd values": mustParse(t, "delay.1h.x", "X-Tab: \ta\tb", "X-CR: a\rb", "X-Empty: ", "x-empty: ",
			"traceparent: 00-abc-def-01",
			"X-Umlaut: ä", "Nats-Trace-Dest: x", "nats-other: y", "Status: 409"),
	} {
		for _, subject := range []string{p.Names.Hop("2h", r.Target), p.Names.Retry("30s", r.Target)} {
			got := r
			for range 3 {
				in := hopOf(t, k, got, subject, "body")
				in.Header["Nats-Stream"] = []string{"added by a server"}
				delete(in.Header, "Nats-Msg-Id")
				again, problem := p.Parse(in)
				if problem != nil {
					t.Fatalf("%s on %s: %v", what, subject, problem)
				}
				if len(in.Header["Delay-Seal"]) != 1 || len(in.Header["Delay-Seal"][0]) != 8+1+22 ||
					!slices.Equal(in.Header["Delay-Format"], []string{"2"}) {
					t.Errorf("%s: seal %q, format %q; want one seal, and format 2", what, in.Header["Delay-Seal"],
						in.Header["Delay-Format"])
				}
				if h := again.TargetHeader(); len(h["Delay-Seal"]) > 0 {
					t.Errorf("%s: the target gets the seal, want none", what)
				}
				got = again
			}
		}
	}
}

// TestKeyRotation: the first key makes the seals, and seals of all keys are valid. The seal of a removed key is not.
func TestKeyRotation(t *testing.T) {
	before, both, after := keysOf(secretOne), keysOf(secretTwo, secretOne), keysOf(secretTwo)
	const subject = "delaysys.hop.2h.orders.expire"
	r := full(t)
	old, young := hopOf(t, before, r, subject, "x"), hopOf(t, both, r, subject, "x")
	for _, tt := range []struct {
		what string
		keys *message.Keys
		in   message.Incoming
		code message.Code
	}{
		{"old, by both", both, old, ""}, {"new, by both", both, young, ""}, {"new, after", after, young, ""},
		{"old, after", after, old, message.UnknownKey}, {"new, before", before, young, message.UnknownKey},
	} {
		_, problem := sealingPolicy(tt.keys).Parse(tt.in)
		if tt.code == "" && problem != nil || tt.code != "" && (problem == nil || problem.Code != tt.code) {
			t.Errorf("%s: got %v, want %q", tt.what, problem, tt.code)
		}
		if tt.code == message.UnknownKey {
			tt.in.KeysCurrent = true
			_, problem = sealingPolicy(tt.keys).Parse(tt.in)
			wantProblem(t, tt.what+", with current keys", problem, message.BadInternal, "DELAY_SECRET")
		}
	}
	again := message.NewKeys(nil, time.Time{})
	if again.Replace([]string{secretOne}, sealedAt); sealingPolicy(again).Keys.DoubtMessage(old) != nil {
		t.Error("the seal of a key that Replace has added is not valid")
	}
}

// TestUnsealedBeforeStart: a message without a seal counts if it was stored before the start of sealing, or if that
// time is zero. Before the start, a sealed message has a format that an older broker can parse.
func TestUnsealedBeforeStart(t *testing.T) {
	const subject = "delaysys.hop.2h.orders.expire"
	r := full(t)
	plain := incoming(subject, wire(t, r.HopHeader()))
	plain.Stream = "DELAY_2h"
	for _, tt := range []struct {
		what     string
		keys     *message.Keys
		stored   time.Time
		believed bool
	}{
		{"no keys at all", nil, at, true},
		{"no keys", message.NewKeys(nil, sealedAt), at, true},
		{"no time", message.NewKeys([]string{secretOne}, time.Time{}), at, true},
		{"before", keysOf(secretOne), sealedAt.Add(-1), true},
		{"at", keysOf(secretOne), sealedAt, false},
		{"after", keysOf(secretOne), at, false},
	} {
		in := plain
		in.At = tt.stored
		got, problem := sealingPolicy(tt.keys).Parse(in)
		if believed := problem == nil; believed != tt.believed {
			t.Errorf("%s: got %v, want no problem: %t", tt.what, problem, tt.believed)
		}
		if !tt.believed {
			wantProblem(t, tt.what, problem, message.BadInternal, "0 seals", "revoke the permission of all other users")
			if !got.Due.Equal(r.Due) || got.Target != r.Target || got.RateKey != r.RateKey || got.ID == r.ID {
				t.Errorf("%s: got %+v, want the claimed due time, target and rate key, and not the claimed id", tt.what, got)
			}
		}
	}
	h := r.HopHeader()
	keysOf(secretOne).SealMessage(subject, h, nil, sealedAt.Add(-1))
	if !slices.Equal(h["Delay-Format"], []string{"1"}) || len(h["Delay-Seal"]) != 1 {
		t.Errorf("before the start of sealing: format %q, seal %q; want format 1 and a seal", h["Delay-Format"],
			h["Delay-Seal"])
	}
	clean := maps.Clone(h)
	delete(clean, "Delay-Seal")
	if message.NewKeys(nil, time.Time{}).SealMessage(subject, h, nil, at); !maps.EqualFunc(h, clean, slices.Equal) {
		t.Errorf("without keys: got %q, want %q", h, clean)
	}
}

// BenchmarkSeal measures the making and the verification of a hop's seal.
func BenchmarkSeal(b *testing.B) {
	k := keysOf(secretOne)
	body := make([]byte, 256)
	const subject = "delaysys.hop.2h.orders.expire"
	h := mustParse(b, "delay.1h.orders.expire", "X-Order: 42").HopHeader()
	k.SealMessage(subject, h, body, at)
	in := message.Incoming{Subject: subject, Header: h, Data: body, At: at}
	b.Run("seal", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			k.SealMessage(subject, h, body, at)
		}
	})
	b.Run("verify", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if k.DoubtMessage(in) != nil {
				b.Fatal("not proven")
			}
		}
	})
}
