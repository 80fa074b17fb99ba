package message_test

import (
	"maps"
	"slices"
	"testing"

	"delaybroker/broker/message"
)

const (
	secretOne = "the first secret of the tests"
	secretTwo = "the second secret of the tests"
)

func keysOf(secrets ...string) *message.Keys { return message.NewKeys(secrets) }

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
	k.SealMessage(subject, h, []byte(body))
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
				if len(in.Header["Delay-Seal"]) != 1 || len(in.Header["Delay-Seal"][0]) != 8+1+22 {
					t.Errorf("%s: seal %q, want one", what, in.Header["Delay-Seal"])
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
	again := message.NewKeys(nil)
	if again.Replace([]string{secretOne}); sealingPolicy(again).Keys.Doubt(old) != nil {
		t.Error("the seal of a key that Replace has added is not valid")
	}
}

// TestSealIsRequired: a message without a seal is a problem if there are keys. The dead letter has the claimed due
// time, target and rate key, and not the claimed id.
func TestSealIsRequired(t *testing.T) {
	const subject = "delaysys.hop.2h.orders.expire"
	r := full(t)
	in := incoming(subject, wire(t, r.HopHeader()))
	in.Stream = "DELAY_2h"
	for _, keys := range []*message.Keys{nil, message.NewKeys(nil)} {
		if _, problem := sealingPolicy(keys).Parse(in); problem != nil {
			t.Errorf("without keys: %v", problem)
		}
	}
	got, problem := sealingPolicy(keysOf(secretOne)).Parse(in)
	wantProblem(t, "no seal", problem, message.BadInternal, "0 seals", "revoke the permission of all other users")
	if !got.Due.Equal(r.Due) || got.Target != r.Target || got.RateKey != r.RateKey || got.ID == r.ID {
		t.Errorf("got %+v, want the claimed due time, target and rate key, and not the claimed id", got)
	}
	h := r.HopHeader()
	clean := maps.Clone(h)
	if message.NewKeys(nil).SealMessage(subject, h, nil); !maps.EqualFunc(h, clean, slices.Equal) {
		t.Errorf("without keys: got %q, want %q", h, clean)
	}
}

// BenchmarkSeal measures the making and the verification of a hop's seal.
func BenchmarkSeal(b *testing.B) {
	k := keysOf(secretOne)
	body := make([]byte, 256)
	const subject = "delaysys.hop.2h.orders.expire"
	h := mustParse(b, "delay.1h.orders.expire", "X-Order: 42").HopHeader()
	k.SealMessage(subject, h, body)
	in := message.Incoming{Subject: subject, Header: h, Data: body, At: at}
	b.Run("seal", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			k.SealMessage(subject, h, body)
		}
	})
	b.Run("verify", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if k.Doubt(in) != nil {
				b.Fatal("not proven")
			}
		}
	})
}
