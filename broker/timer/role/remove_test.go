package role

import (
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/jsapi"
	"delaybroker/test/natstest"
)

// TestRemoveEntries checks which entries are removed with a generation. The firings of other generations stay, unless
// they are known to be settled.
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
		parallel(t, name, func(t *testing.T, e *entries) {
			e.write(tt.words)
			for range 2 { // the second time, no entry is left to remove
				if _, err := e.RemoveEntries(t.Context(), subject, tt.generation, tt.what); err != nil {
					t.Error(err)
				}
			}
			if got := e.left(); got != tt.left {
				t.Errorf("%q is left, want %q", got, tt.left)
			}
		})
	}
}

// TestRemoveCancelled: if a copy shows that a cancel has cancelled a plain set, the set is removed without a read from
// the leader. In all other cases, the entries are removed as without a copy.
func TestRemoveCancelled(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		words string
		what  Removal
		left  string
		reads int // of the leader
	}{
		"a set":                    {"set cancel:1", Removal{Entry: 2, Keep: true, Cancelled: 1}, "cancel:1", 0},
		"a set behind another":     {"set set cancel:2", Removal{Entry: 3, Keep: true, Cancelled: 2}, "set cancel:2", 0},
		"a set that is removed":    {"gone cancel", Removal{Entry: 2, Keep: true, Cancelled: 1}, "cancel", 0},
		"the cancel does not stay": {"set cancel:1", Removal{Entry: 2, Cancelled: 1}, "", 2},
		"a firing": {
			"set fired:1 cancel:2", Removal{Entry: 3, Keep: true, Cancelled: 2}, "fired:1 cancel:2", 4,
		},
		"a round": {
			"every round:1 cancel:2", Removal{Entry: 3, Keep: true, Cancelled: 2}, "every round:1 cancel:2", 4,
		},
		"a debounced set":        {"debounced cancel:1", Removal{Entry: 2, Keep: true, Cancelled: 1}, "cancel:1", 2},
		"an unknown expectation": {"set cancel", Removal{Entry: 2, Keep: true}, "cancel", 2},
	} {
		parallel(t, name, func(t *testing.T, e *entries) {
			e.Copies = jsapi.Client{Conn: e.server.Connect(), API: "$JS.API"}
			e.write(tt.words)
			reads := 0
			e.API.API = natstest.ProxyAPI
			natstest.Proxy(t, e.server, func(subject string, _ *nats.Msg) bool {
				if strings.Contains(subject, "STREAM.MSG.GET.") {
					reads++
				}
				return false
			})
			if _, err := e.RemoveEntries(t.Context(), subject, tt.what.Entry, tt.what); err != nil {
				t.Error(err)
			}
			if reads != tt.reads {
				t.Errorf("the leader was read %d times, want %d", reads, tt.reads)
			}
			if got := e.left(); got != tt.left {
				t.Errorf("%q is left, want %q", got, tt.left)
			}
		})
	}
}

// TestCancelStaysOverRounds: while a round is on its way, a cancel of the next round stays: without it, the next round
// would be pending again.
func TestCancelStaysOverRounds(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *entries) {
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
