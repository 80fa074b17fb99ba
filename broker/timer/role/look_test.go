package role

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/timer/entry"
	"delaybroker/test/natstest"
)

// TestLook checks which entry decides about generation 1. An entry after its firing does not hide the firing, unless
// the firing is settled.
func TestLook(t *testing.T) {
	t.Parallel()
	for words, want := range map[string]uint64{ // the sequence of the entry that decides
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
		parallel(t, words, func(t *testing.T, e *entries) {
			e.write(words)
			see, err := e.Look(t.Context(), subject, 1)
			if err != nil || see.Sequence != want || see.In.Sequence != want || see.None != (want == 0) {
				t.Errorf("it sees %+v, %v; want entry %d", see, err, want)
			}
			if settled := strings.Contains(words, "gone:1"); see.Settled != settled {
				t.Errorf("the round before is settled: %t, want %t", see.Settled, settled)
			}
		})
	}
}

// TestLookAtRound: if the entry of a round is the first of its subject, one request suffices, with any later entries.
// The request also proves that no entry is left before the round. For any other round, the result is that of Look.
func TestLookAtRound(t *testing.T) {
	t.Parallel()
	for words, alone := range map[string]bool{ // whether no entry is left before the own entry
		"own": true, "every own:1": false, "every own:1 gone:1": true, "every gone own gone:1": true,
		"every own:1 gone:1 round:2": true, "every own:1 gone:1 cancel": true, "every own:1 cancel": false,
		"own gone:1": false, "own round:1 gone:1": false,
	} {
		parallel(t, words, func(t *testing.T, e *entries) {
			before, _, _ := strings.Cut(words, "own")
			generation := uint64(strings.Count(before, " ") + 1)
			e.write(strings.Replace(strings.Replace(words, "own:", "round:", 1), "own", "every", 1))
			want, err := e.Look(t.Context(), subject, generation)
			if err != nil {
				t.Fatal(err)
			}
			var asked atomic.Int64
			nc := e.server.Connect()
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
	}
}

// TestBeforeSettled checks whether the earlier rounds of the series are settled, with other entries between them.
func TestBeforeSettled(t *testing.T) {
	t.Parallel()
	for words, want := range map[string]bool{ // for the last remaining entry
		"every": true, "every moved:1": true, "every moved:1 moved:2": true,
		"every round:1": false, "every round:1 gone:1": true,
		"every round:1 moved:2": false, "every round:1 moved:2 gone:1": true,
		"every round:1 moved:2 moved:3": false, "every round:1 moved:2 moved:3 gone:1": true,
		"every round:1 every moved:3": true, // another series
	} {
		parallel(t, words, func(t *testing.T, e *entries) {
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
	}
}

// TestLookAtADeposedLeader: a leader that has no entry after a generation, although another one exists, proves nothing.
func TestLookAtADeposedLeader(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *entries) {
		e.write("set fired:1 set")
		nc := e.server.Connect()
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
