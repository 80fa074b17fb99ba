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

// TestReadState checks which entry is the state of generation 1. An entry after its firing does not hide the firing,
// unless the firing is settled.
func TestReadState(t *testing.T) {
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
		runParallel(t, words, func(t *testing.T, e *entries) {
			e.write(words)
			state, err := e.readState(t.Context(), subject, 1)
			if err != nil || state.Sequence != want || state.Message.Sequence != want || state.NoEntry != (want == 0) {
				t.Errorf("state %+v, %v; want entry %d", state, err, want)
			}
			if settled := strings.Contains(words, "gone:1"); state.Settled != settled {
				t.Errorf("round settled: %t, want %t", state.Settled, settled)
			}
		})
	}
}

// TestReadRoundState: if the entry of a round is the first of its subject, one request suffices, whatever entries
// follow. The request also proves that no entry is left before the round. For any other round, the result is that of
// readState.
func TestReadRoundState(t *testing.T) {
	t.Parallel()
	for words, earlierRemoved := range map[string]bool{ // whether no entry is left before the entry of the round
		"own": true, "every own:1": false, "every own:1 gone:1": true, "every gone own gone:1": true,
		"every own:1 gone:1 round:2": true, "every own:1 gone:1 cancel": true, "every own:1 cancel": false,
		"own gone:1": false, "own round:1 gone:1": false,
	} {
		runParallel(t, words, func(t *testing.T, e *entries) {
			before, _, _ := strings.Cut(words, "own")
			generation := uint64(strings.Count(before, " ") + 1)
			e.write(strings.Replace(strings.Replace(words, "own:", "round:", 1), "own", "every", 1))
			want, err := e.readState(t.Context(), subject, generation)
			if err != nil {
				t.Fatal(err)
			}
			var asked atomic.Int64
			nc := e.server.Connect()
			if _, err := nc.Subscribe("$JS.API.STREAM.MSG.GET.>", func(*nats.Msg) { asked.Add(1) }); err != nil {
				t.Fatal(err)
			}
			natstest.Flush(t, nc)
			state, err := e.readRoundState(t.Context(), subject, generation)
			if err != nil || state.IsFirst != earlierRemoved {
				t.Errorf("state %+v, %v; want IsFirst %t", state, err, earlierRemoved)
			}
			synctest.Wait()
			n := asked.Load()
			if earlierRemoved && (n != 1 || state.Sequence != generation || state.Message.Sequence != generation) {
				t.Errorf("after %d requests: state %+v; want one request, and the entry of the round", n, state)
			} else if !earlierRemoved && state.Sequence != want.Sequence {
				t.Errorf("state %+v, want %+v", state, want)
			}
		})
	}
}

// TestReadEarlierRounds checks whether the earlier rounds of the series are settled, with other entries between them.
func TestReadEarlierRounds(t *testing.T) {
	t.Parallel()
	for words, want := range map[string]bool{ // whether the rounds before the last entry are settled
		"every": true, "every moved:1": true, "every moved:1 moved:2": true,
		"every round:1": false, "every round:1 gone:1": true,
		"every round:1 moved:2": false, "every round:1 moved:2 gone:1": true,
		"every round:1 moved:2 moved:3": false, "every round:1 moved:2 moved:3 gone:1": true,
		"every round:1 every moved:3": true, // another series
	} {
		runParallel(t, words, func(t *testing.T, e *entries) {
			e.write(words)
			m, err := e.API.Last(t.Context(), e.Name(), subject)
			if err != nil {
				t.Fatal(err)
			}
			series := entry.Parse(e.Policy, m.Incoming(e.Name())).Origin().Series
			settled, earlierRemoved, err := e.readEarlierRounds(t.Context(), subject, series, m.Sequence)
			if err != nil || settled != want {
				t.Errorf("settled %t, %v; want %t", settled, err, want)
			}
			want := e.remaining() == words[strings.LastIndex(words, " ")+1:]
			if earlierRemoved != want && !strings.Contains(words, "gone") {
				t.Errorf("no earlier entry is left: %t, want %t", earlierRemoved, want)
			}
		})
	}
}

// TestReadStateFromADeposedLeader: a leader without an entry after a generation, although one exists, proves nothing.
func TestReadStateFromADeposedLeader(t *testing.T) {
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
		if state, err := e.readState(t.Context(), subject, 1); !errors.Is(err, errDeposed) {
			t.Errorf("state %+v, %v; want %v", state, err, errDeposed)
		}
	})
}
