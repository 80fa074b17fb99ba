package message_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"delaybroker/broker/message"
)

// tampering tries changes of a valid message.
type tampering struct {
	t        *testing.T
	policy   message.Policy
	original message.Incoming
	changed  int // number of changes
}

// try parses a changed message, and fails if the seal is still valid.
func (x *tampering) try(what string, in message.Incoming) {
	x.t.Helper()
	x.changed++
	r, problem := x.policy.Parse(in)
	if problem == nil || problem.Code != message.BadInternal && problem.Code != message.UnknownKey {
		x.t.Errorf("%s: got %v, want %s or %s", what, problem, message.BadInternal, message.UnknownKey)
	}
	if r.ID == full(x.t).ID {
		x.t.Errorf("%s: the request has the claimed id %s", what, r.ID)
	}
}

// edit returns the valid message with a changed header.
func (x *tampering) edit(change func(h message.Header)) message.Incoming {
	in := x.original
	in.Header = make(message.Header)
	for name, values := range x.original.Header {
		in.Header[name] = slices.Clone(values)
	}
	change(in.Header)
	return in
}

// TestTampered changes each byte of a message in turn: in its subject, as far as the subject stays that of a hop, its
// sealed headers, its body and its seal. The seal is valid for none of the changed messages.
func TestTampered(t *testing.T) {
	k := keysOf(secretOne)
	p := sealingPolicy(k)
	const subject = "delaysys.hop.2h.orders.expire"
	good := hopOf(t, k, full(t), subject, "the body")
	x := &tampering{t: t, policy: p, original: good}
	try, edit := x.try, x.edit
	flip := func(s string, i int) string { return s[:i] + string(s[i]^1) + s[i+1:] }
	for i := range subject {
		in := good
		if in.Subject = flip(subject, i); p.Names.Parse(in.Subject).Form == message.FormHop {
			try("subject "+in.Subject, in)
		}
	}
	for i := range good.Data {
		in := good
		in.Data = []byte(flip(string(good.Data), i))
		try("body "+string(in.Data), in)
	}
	in := good
	in.Data = nil
	try("no body", in)
	in.Data = append(slices.Clone(good.Data), 0)
	try("a longer body", in)
	for name, values := range good.Header {
		if strings.HasPrefix(name, "Nats-") {
			continue
		}
		try("without "+name, edit(func(h message.Header) { delete(h, name) }))
		try("twice "+name, edit(func(h message.Header) { h[name] = append(h[name], values[0]) }))
		for v, value := range values {
			for i := range value {
				try(fmt.Sprintf("%s: byte %d", name, i), edit(func(h message.Header) { h[name][v] = flip(value, i) }))
			}
		}
		if name != message.HeaderSeal {
			try("respelt "+name, edit(func(h message.Header) { h[strings.ToUpper(name)] = h[name]; delete(h, name) }))
		}
	}
	try("another header", edit(func(h message.Header) { h["X-More"] = []string{""} }))
	try("a value moved",
		edit(func(h message.Header) { h["X-Order"], h["x-order"] = []string{"42"}, []string{"43", "44"} }))
	seal := good.Header[message.HeaderSeal][0]
	for _, other := range []string{"", ".", seal + "=", seal + " ", seal[:len(seal)-1], strings.ToLower(seal), seal[9:],
		seal[:9]} {
		try("seal "+other, edit(func(h message.Header) { h[message.HeaderSeal] = []string{other} }))
	}
	if x.changed < 300 {
		t.Errorf("%d changes were tried, want at least 300", x.changed)
	}
	if _, problem := p.Parse(good); problem != nil {
		t.Errorf("unchanged: got the problem %v, want none", problem)
	}
}

// TestSealIsForOnePurpose: the seal of a note is valid only for this note. It is not valid for a message, and the seal
// of a message is not valid for a note.
func TestSealIsForOnePurpose(t *testing.T) {
	k := keysOf(secretOne)
	const subject = "delaysys.owners.table"
	seal := k.Seal(subject, []byte("body"))
	trusts := func(k *message.Keys, subject, body, seal string) bool {
		return k.Trusts(message.Note{Subject: subject, Body: []byte(body), Seal: seal})
	}
	if !trusts(k, subject, "body", seal) {
		t.Error("the seal of a note is not valid for the note")
	}
	for what, trusted := range map[string]bool{
		"another subject": trusts(k, subject+"s", "body", seal),
		"another body":    trusts(k, subject, "bodY", seal),
		"a byte moved":    trusts(k, subject+"b", "ody", seal),
		"no seal":         trusts(k, subject, "body", ""),
		"another secret":  trusts(keysOf(secretTwo), subject, "body", seal),
	} {
		if trusted {
			t.Errorf("%s: the seal is valid", what)
		}
	}
	h := message.Header{}
	k.SealMessage(subject, h, []byte("body"))
	if trusts(k, subject, "body", h[message.HeaderSeal][0]) {
		t.Error("the seal of a message is valid for a note")
	}
	if k.Doubt(message.Incoming{Subject: subject, At: at, Data: []byte("body"),
		Header: message.Header{message.HeaderSeal: {seal}}}) == nil {
		t.Error("the seal of a note is valid for a message")
	}
}

// FuzzSeal: no two messages with different meanings have the same seal.
func FuzzSeal(f *testing.F) {
	k := keysOf(secretOne)
	f.Add("delaysys.hop.1h.x", "X-A", "1", "X-B", "2", "body", "delaysys.hop.1h.x", "X-A", "1", "X-B", "2", "body")
	f.Add("delaysys.hop.1h.x", "X-A", "1", "X-B", "2", "body", "delaysys.hop.1h.x", "X-A", "1X-B", "", "2", "body")
	f.Add("delaysys.hop.1h.x", "a", "", "b", "", "", "delaysys.hop.1h.xa", "", "", "b", "", "")
	f.Fuzz(func(t *testing.T, s1, n1, v1, m1, w1, b1, s2, n2, v2, m2, w2, b2 string) {
		header := func(n, v, m, w string) message.Header {
			h := message.Header{n: {v}}
			h[m] = append(h[m], w)
			return h
		}
		h1, h2 := header(n1, v1, m1, w1), header(n2, v2, m2, w2)
		delete(h2, message.HeaderSeal)
		k.SealMessage(s1, h1, []byte(b1))
		seal := h1[message.HeaderSeal]
		h2[message.HeaderSeal] = seal
		proven := k.Doubt(message.Incoming{Subject: s2, Header: h2, Data: []byte(b2), At: at}) == nil
		if !proven {
			return
		}
		// Headers that the broker does not use may differ, and so may values that nats.go encodes equally.
		if s1 != s2 || b1 != b2 {
			t.Errorf("%q and %q, %q and %q have the same seal", s1, s2, b1, b2)
		}
		believed := func(h message.Header) string {
			r, _ := policy.Parse(message.Incoming{Stream: "S", Sequence: 1, At: at, Subject: "delay.1h.x", Header: h})
			all := make(map[string]string)
			for name, values := range r.User {
				for _, v := range values {
					all[name] += fmt.Sprintf("%q", strings.Map(foldBreak, strings.Trim(v, " \t\r\n")))
				}
			}
			return fmt.Sprint(all)
		}
		delete(h1, message.HeaderSeal)
		delete(h2, message.HeaderSeal)
		if a, b := believed(h1), believed(h2); a != b {
			t.Errorf("%s and %s have the same seal", a, b)
		}
	})
}

// foldBreak turns a line break into a space, as nats.go does.
func foldBreak(r rune) rune {
	if r == '\r' || r == '\n' {
		return ' '
	}
	return r
}
