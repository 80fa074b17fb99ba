package role

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/lane"
	"delaybroker/broker/message"
	"delaybroker/broker/timer/entry"
	"delaybroker/test/natstest"
)

const subject = "delaytimer.key.orders.x"

// entries is a timers' stream in which a test writes the entries of one subject.
type entries struct {
	*Stream
	t      *testing.T
	server *natstest.Server
	js     jetstream.JetStream
	other  *Stream // the same stream with a secret that the embedded Stream does not have
	words  string  // the words of the written entries
}

// bubble runs f with the entries of a server under fake time.
func bubble(t *testing.T, f func(t *testing.T, e *entries)) {
	t.Helper()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) { f(t, newEntries(t, s)) })
}

// runParallel runs bubble in a parallel subtest.
func runParallel(t *testing.T, name string, f func(t *testing.T, e *entries)) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		bubble(t, f)
	})
}

func newEntries(t *testing.T, s *natstest.Server) *entries {
	t.Helper()
	names, err := message.NewNames("delay")
	if err != nil {
		t.Fatal(err)
	}
	nc := s.Connect()
	withSecret := func(secret string) *Stream {
		return NewStream(Config{
			Instance: "me", API: jsapi.Client{Conn: nc, API: "$JS.API"},
			Policy: message.Policy{Names: names, Keys: message.NewKeys([]string{secret}), MaxDelay: time.Hour},
			Sample: func(context.Context, string) (lane.Sample, error) {
				return lane.Sample{Quorate: true, LastSeq: 99}, nil
			},
		})
	}
	e := &entries{
		Stream: withSecret("a secret of sixteen"), other: withSecret("another, as long"), t: t, server: s,
		js: s.JetStream(nc),
	}
	if _, err := e.js.CreateStream(t.Context(),
		jetstream.StreamConfig{Name: e.Name(), Subjects: []string{"delaytimer.>"}, AllowDirect: true}); err != nil {
		t.Fatal(err)
	}
	return e
}

// write stores entries, one for each word:
//
//	set, every, debounced   the set of a timer, of a series, or of a debounced run
//	set:3                   a set that expects entry 3
//	cancel:3                a cancel that expects entry 3
//	over:3                  the outcome of generation 3
//	fired:3, unproven:3     the firing of generation 3, with a known or an unknown key
//	round:3                 the next round, after round 3 has fired
//	moved:3                 a round that replaces round 3, which has not fired
//	gone, gone:3            an entry that is removed, alone or together with entry 3
func (e *entries) write(words string) {
	e.t.Helper()
	e.words = words
	for i, word := range strings.Fields(words) {
		kind, number, _ := strings.Cut(word, ":")
		var g uint64
		_, _ = fmt.Sscan(number, &g)
		id := message.ID{Stream: e.Name(), Sequence: max(g, 1), At: time.Now()}
		r := entry.Pending{Request: message.Request{ID: id.String(), Target: "orders.x"}}
		m := &nats.Msg{Subject: subject, Header: nats.Header{"Delay-For": {"1h"}}, Data: []byte(word)}
		switch kind {
		case "every":
			m.Header = nats.Header{"Delay-Every": {"1h"}}
		case "debounced":
			m.Header.Set("Delay-Max-Wait", "1h")
		case "round", "moved":
			m = e.sealed(subject, e.roundAt(g, kind == "round"), m.Data)
		case "cancel":
			m.Header = nats.Header{"Delay-Cancel": {"1"}}
		case "fired":
			m = e.sealed(subject, r.FiredHeader(g, "other"), m.Data)
		case "unproven":
			m = e.other.sealed(subject, r.FiredHeader(g, "other"), m.Data)
		case "over":
			m = e.sealed(subject, r.OverHeader(g, g, entry.Delivered), nil)
		}
		if kind == "round" || kind == "moved" { // its header already has an expectation
		} else if m.Header.Del("Nats-Expected-Last-Subject-Sequence"); g > 0 && (kind == "cancel" || kind == "set") {
			m.Header.Set("Nats-Expected-Last-Subject-Sequence", number)
		}
		if _, err := e.js.PublishMsg(e.t.Context(), m); err != nil {
			e.t.Fatalf("%s: %v", word, err)
		}
		if kind == "gone" {
			for _, sequence := range []uint64{uint64(i + 1), g} {
				if err := e.API.Delete(e.t.Context(), e.Name(), sequence); sequence > 0 && err != nil {
					e.t.Fatal(err)
				}
			}
		}
	}
}

// roundAt returns the header of an entry that replaces the set of a series at a sequence.
func (e *entries) roundAt(sequence uint64, fires bool) message.Header {
	m, err := e.API.Message(e.t.Context(), e.Name(), sequence)
	if err != nil {
		e.t.Fatal(err)
	}
	r := entry.Parse(e.Policy, m.Incoming(e.Name())).Pending
	s, round := r.Round()
	n := entry.Next{Round: round, Table: r.Series.Table, First: s.First}
	if fires {
		n.Instance, n.Round = "other", r.Series.Table.Decide(s, round, r.Due).Next
	}
	return r.RoundHeader(sequence, n)
}

// remaining returns the words of the remaining entries of the subject.
func (e *entries) remaining() string {
	var words []string
	all := strings.Fields(e.words)
	for m, err := e.API.Next(e.t.Context(), e.Name(), 1, subject); err == nil; {
		words = append(words, all[m.Sequence-1])
		m, err = e.API.Next(e.t.Context(), e.Name(), m.Sequence+1, subject)
	}
	return strings.Join(words, " ")
}
