package role

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
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
	t     *testing.T
	js    jetstream.JetStream
	other *Stream // with a secret that the first does not know
	words string  // that were written
}

func newEntries(t *testing.T, s *natstest.Server) *entries {
	t.Helper()
	names, err := message.NewNames("delay")
	if err != nil {
		t.Fatal(err)
	}
	nc := s.Connect()
	with := func(secret string) *Stream {
		return NewStream(Config{
			Instance: "me", API: jsapi.Client{Conn: nc, API: "$JS.API"},
			Policy: message.Policy{Names: names, Keys: message.NewKeys([]string{secret}, time.Unix(0, 0)), MaxDelay: time.Hour},
			Sample: func(context.Context, string) (lane.Sample, error) {
				return lane.Sample{Quorate: true, LastSeq: 99}, nil
			},
		})
	}
	e := &entries{
		Stream: with("a secret of sixteen"), other: with("another, as long"), t: t, js: s.JetStream(nc),
	}
	if _, err := e.js.CreateStream(t.Context(),
		jetstream.StreamConfig{Name: e.Name(), Subjects: []string{"delaytimer.>"}, AllowDirect: true}); err != nil {
		t.Fatal(err)
	}
	return e
}

// write stores entries, in words: "set", "set:3" in place of 3, "cancel:3", "fired:3", "unproven:3", "over:3", "every"
// for the set of a series, "debounced" for a debounced set, "round:3" for the next round where 3 has fired, "moved:3"
// where it has not, and "gone" for one that is removed, or "gone:3" for one that is removed with 3.
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
		if kind == "round" || kind == "moved" { // with its expectation
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

// TestLook: what is true of generation 1. Another entry behind its firing does not hide it, unless that is settled.
func TestLook(t *testing.T) {
	t.Parallel()
	for words, want := range map[string]uint64{ // the sequence of what tells
		"set": 1, "set fired:1": 2, "set fired:1 over:1": 3, "set set": 2, "set cancel:1": 2, "gone": 0,
		"set fired:1 set":                          2,
		"set fired:1 cancel":                       2,
		"set fired:1 set set:3 fired:4":            2,
		"set fired:1 cancel:2 set fired:4 over:4":  2,
		"set fired:1 gone set":                     2,
		"gone fired:1 set":                         2,
		"set fired:1 over:1 set":                   3,
		"set gone gone set":                        4,
		"set set fired:2":                          3,
		"set unproven:1 set":                       2,
		"set gone unproven:1":                      3,
		"set set fired:2 set":                      4,
		"set cancel:1 set fired:3 set":             5,
		"set gone over:1 set":                      4,
		"set fired:1 gone over:9 set fired:5 gone": 2,
		"every round:1":                            2,
		"every moved:1":                            2,
		"every round:1 set":                        2,
		"every round:1 cancel":                     2,
		"every round:1 gone:1":                     2,
		"every round:1 gone:1 set":                 2,
		"every moved:1 cancel":                     3,
		"every round:1 set fired:3":                2,
	} {
		t.Run(words, func(t *testing.T) {
			t.Parallel()
			natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
				e := newEntries(t, s)
				e.write(words)
				see, err := e.Look(t.Context(), subject, 1)
				if err != nil || see.Sequence != want || see.In.Sequence != want || see.None != (want == 0) {
					t.Errorf("it sees %+v, %v; want entry %d", see, err, want)
				}
				if settled := strings.Contains(words, "gone:1"); see.Settled != settled {
					t.Errorf("the round before is settled: %t, want %t", see.Settled, settled)
				}
			})
		})
	}
}

// TestLookAtRound: a round whose entry is the first of its subject is seen with one question, which tells that nothing
// is left before it; whatever stands over it. Of any other it sees what Look does.
func TestLookAtRound(t *testing.T) {
	t.Parallel()
	for words, alone := range map[string]bool{ // of the entry that is called own
		"own": true, "every own:1": false, "every own:1 gone:1": true, "every gone own gone:1": true,
		"every own:1 gone:1 round:2": true, "every own:1 gone:1 cancel": true, "every own:1 cancel": false,
		"own gone:1": false, "own round:1 gone:1": false,
	} {
		t.Run(words, func(t *testing.T) {
			t.Parallel()
			natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
				e := newEntries(t, s)
				before, _, _ := strings.Cut(words, "own")
				generation := uint64(strings.Count(before, " ") + 1)
				e.write(strings.Replace(strings.Replace(words, "own:", "round:", 1), "own", "every", 1))
				want, err := e.Look(t.Context(), subject, generation)
				if err != nil {
					t.Fatal(err)
				}
				var asked atomic.Int64
				nc := s.Connect()
				if _, err := nc.Subscribe("$JS.API.STREAM.MSG.GET.>", func(*nats.Msg) { asked.Add(1) }); err != nil {
					t.Fatal(err)
				}
				natstest.Flush(t, nc)
				see, err := e.LookAtRound(t.Context(), subject, generation)
				if err != nil || see.Alone != alone {
					t.Errorf("it sees %+v, %v; want that it is alone: %t", see, err, alone)
				}
				synctest.Wait()
				if n := asked.Load(); alone && (n != 1 || see.Sequence != generation || see.In.Sequence != generation) {
					t.Errorf("after %d questions it sees %+v; want one, and its own entry", n, see)
				} else if !alone && see.Sequence != want.Sequence {
					t.Errorf("it sees %+v, want %+v", see, want)
				}
			})
		})
	}
}

// TestBeforeSettled: whether a round of the same series is on its way before a generation, whatever stands between.
func TestBeforeSettled(t *testing.T) {
	t.Parallel()
	for words, want := range map[string]bool{ // of the last entry that is there
		"every": true, "every moved:1": true, "every moved:1 moved:2": true,
		"every round:1": false, "every round:1 gone:1": true,
		"every round:1 moved:2": false, "every round:1 moved:2 gone:1": true,
		"every round:1 moved:2 moved:3": false, "every round:1 moved:2 moved:3 gone:1": true,
		"every round:1 every moved:3": true, // another series
	} {
		t.Run(words, func(t *testing.T) {
			t.Parallel()
			natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
				e := newEntries(t, s)
				e.write(words)
				m, err := e.API.Last(t.Context(), e.Name(), subject)
				if err != nil {
					t.Fatal(err)
				}
				series := entry.Parse(e.Policy, m.Incoming(e.Name())).Origin().Series
				settled, alone, err := e.BeforeSettled(t.Context(), subject, series, m.Sequence)
				if err != nil || settled != want {
					t.Errorf("settled %t, %v; want %t", settled, err, want)
				}
				if want := e.left() == words[strings.LastIndex(words, " ")+1:]; alone != want && !strings.Contains(words, "gone") {
					t.Errorf("nothing is left before: %t, want %t", alone, want)
				}
			})
		})
	}
}

// TestLookAtADeposedLeader: a leader that knows of nothing behind a generation, where another entry stands, proves
// nothing.
func TestLookAtADeposedLeader(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		e := newEntries(t, s)
		e.write("set fired:1 set")
		nc := s.Connect()
		if _, err := nc.Subscribe("OLD.>", func(m *nats.Msg) {
			if strings.Contains(string(m.Data), "next_by_subj") {
				_ = m.Respond([]byte(`{"type":"io.nats.jetstream.api.v1.stream_msg_get_response",` +
					`"error":{"code":404,"err_code":10037,"description":"no message found"}}`))
				return
			}
			_ = nc.PublishRequest("$JS.API"+strings.TrimPrefix(m.Subject, "OLD"), m.Reply, m.Data)
		}); err != nil {
			t.Fatal(err)
		}
		natstest.Flush(t, nc)
		e.API.API = "OLD"
		if see, err := e.Look(t.Context(), subject, 1); !errors.Is(err, errDeposed) {
			t.Errorf("it sees %+v, %v; want no answer", see, err)
		}
	})
}

// TestRemoveEntries: what is removed with a generation. The firings of others stay, unless they are known to be
// settled.
func TestRemoveEntries(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		words      string
		generation uint64
		what       Removal
		left       string
	}{
		"a firing":                     {"set fired:1", 1, Removal{Entry: 2}, ""},
		"and others are left":          {"set fired:1 set", 1, Removal{Entry: 2}, "set"},
		"over":                         {"set fired:1 over:1", 1, Removal{Entry: 3, Keep: true}, "over:1"},
		"a marker is stored":           {"set set set", 3, Removal{Entry: 3, Keep: true}, "set"},
		"and the set before has fired": {"set fired:1 set", 3, Removal{Entry: 3, Keep: true}, "fired:1 set"},
		"another has fired":            {"set fired:1 set fired:3", 3, Removal{Entry: 4}, "fired:1"},
		"two others have": {"set fired:1 set fired:3 set fired:5 over:5", 5, Removal{Entry: 7, Keep: true},
			"fired:1 fired:3 over:5"},
		"the second is settled":         {"set fired:1 set fired:3", 1, Removal{Entry: 2}, "set fired:3"},
		"a cancel":                      {"set fired:1 cancel", 3, Removal{Entry: 3}, "fired:1"},
		"another is over":               {"set fired:1 over:1 set", 4, Removal{Entry: 4, Keep: true}, "set"},
		"ours, or not":                  {"set unproven:1 set", 3, Removal{Entry: 3, Keep: true}, "unproven:1 set"},
		"it is none of ours":            {"set unproven:1 set", 2, Removal{Entry: 2}, "set"},
		"alone":                         {"set set", 2, Removal{Entry: 2, Alone: true}, "set"},
		"a round":                       {"every round:1", 1, Removal{Entry: 1}, "round:1"},
		"a round waits":                 {"every round:1", 2, Removal{Entry: 2, Keep: true}, "every round:1"},
		"a round was moved":             {"every moved:1", 2, Removal{Entry: 2, Keep: true}, "moved:1"},
		"a round is cancelled":          {"every round:1 cancel", 3, Removal{Entry: 3, Keep: true}, "every round:1 cancel"},
		"and the one before is settled": {"every round:1 gone:1 cancel", 4, Removal{Entry: 4}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
				e := newEntries(t, s)
				e.write(tt.words)
				for range 2 { // the second time, there is nothing left to do
					if _, err := e.RemoveEntries(t.Context(), subject, tt.generation, tt.what); err != nil {
						t.Error(err)
					}
				}
				if got := e.left(); got != tt.left {
					t.Errorf("%q is left, want %q", got, tt.left)
				}
			})
		})
	}
}

// TestCancelStaysOverRounds: while a round is on its way, what was put over the next one stays, or that would be
// pending again.
func TestCancelStaysOverRounds(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		e := newEntries(t, s)
		e.write("every round:1 cancel")
		if _, err := e.RemoveEntries(t.Context(), subject, 3, Removal{Entry: 3}); !errors.Is(err, errUnsettled) {
			t.Errorf("the cancel is removed: %v", err)
		}
		if got := e.left(); got != e.words {
			t.Errorf("%q is left", got)
		}
		for _, of := range []uint64{1, 3} {
			if _, err := e.RemoveEntries(t.Context(), subject, of, Removal{Entry: of}); err != nil {
				t.Error(err)
			}
		}
		if got := e.left(); got != "" {
			t.Errorf("%q is left in the end", got)
		}
	})
}

// roundAt is the header of an entry in place of the series that is set at a sequence.
func (e *entries) roundAt(sequence uint64, fires bool) message.Header {
	m, err := e.API.Message(e.t.Context(), e.Name(), sequence)
	if err != nil {
		e.t.Fatal(err)
	}
	r := entry.Parse(e.Policy, m.Incoming(e.Name())).Pending
	s, round := r.Round()
	n := entry.Next{Round: round, Table: r.Recurs.Table, First: s.First}
	if fires {
		n.By, n.Round = "other", r.Recurs.Table.Decide(s, round, r.Due).Next
	}
	return r.RoundHeader(sequence, n)
}

// left are the entries of the subject.
func (e *entries) left() string {
	var words []string
	all := strings.Fields(e.words)
	for m, err := e.API.Next(e.t.Context(), e.Name(), 1, subject); err == nil; {
		words = append(words, all[m.Sequence-1])
		m, err = e.API.Next(e.t.Context(), e.Name(), m.Sequence+1, subject)
	}
	return strings.Join(words, " ")
}
