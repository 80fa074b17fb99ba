package role

import (
	"errors"
	"testing"
)

// TestRemoveEntries checks which entries are removed with a generation. The firings of other generations stay, unless
// they are known to be settled.
func TestRemoveEntries(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		words      string
		generation uint64
		removal    removal
		left       string
	}{
		"a firing":                          {"set fired:1", 1, removal{entry: 2}, ""},
		"a firing before a set":             {"set fired:1 set", 1, removal{entry: 2}, "set"},
		"a firing with its outcome":         {"set fired:1 over:1", 1, removal{entry: 3, reach: below}, "over:1"},
		"a marker is stored":                {"set set set", 3, removal{entry: 3, reach: below}, "set"},
		"a marker is stored after a firing": {"set fired:1 set", 3, removal{entry: 3, reach: below}, "fired:1 set"},
		"two firings":                       {"set fired:1 set fired:3", 3, removal{entry: 4}, "fired:1"},
		"three firings": {"set fired:1 set fired:3 set fired:5 over:5", 5, removal{entry: 7, reach: below},
			"fired:1 fired:3 over:5"},
		"the first of two firings":  {"set fired:1 set fired:3", 1, removal{entry: 2}, "set fired:3"},
		"a cancel after a firing":   {"set fired:1 cancel", 3, removal{entry: 3}, "fired:1"},
		"a set after an outcome":    {"set fired:1 over:1 set", 4, removal{entry: 4, reach: below}, "set"},
		"an earlier unproven entry": {"set unproven:1 set", 3, removal{entry: 3, reach: below}, "unproven:1 set"},
		"the unproven entry itself": {"set unproven:1 set", 2, removal{entry: 2}, "set"},
		"only the entry":            {"set set", 2, removal{entry: 2, reach: onlyThis}, "set"},
		"a round":                   {"every round:1", 1, removal{entry: 1}, "round:1"},
		"a round waits":             {"every round:1", 2, removal{entry: 2, reach: below}, "every round:1"},
		"a round was moved":         {"every moved:1", 2, removal{entry: 2, reach: below}, "moved:1"},
		"a round is cancelled":      {"every round:1 cancel", 3, removal{entry: 3, reach: below}, "every round:1 cancel"},
		"a round is cancelled, the previous one is settled": {"every round:1 gone:1 cancel", 4, removal{entry: 4}, ""},
	} {
		runParallel(t, name, func(t *testing.T, e *entries) {
			e.write(tt.words)
			for range 2 { // the second time, no entry is left to remove
				if _, err := e.removeEntries(t.Context(), subject, tt.generation, tt.removal); err != nil {
					t.Error(err)
				}
			}
			if got := e.remaining(); got != tt.left {
				t.Errorf("%q is left, want %q", got, tt.left)
			}
		})
	}
}

// TestCancelStaysOverRounds: while a fired round is not settled, a cancel of the next round stays. Without the cancel,
// the next round would be pending again.
func TestCancelStaysOverRounds(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *entries) {
		e.write("every round:1 cancel")
		if _, err := e.removeEntries(t.Context(), subject, 3, removal{entry: 3}); !errors.Is(err, errUnsettled) {
			t.Errorf("the cancel is removed: %v", err)
		}
		if got := e.remaining(); got != e.words {
			t.Errorf("%q is left", got)
		}
		for _, generation := range []uint64{1, 3} {
			if _, err := e.removeEntries(t.Context(), subject, generation, removal{entry: generation}); err != nil {
				t.Error(err)
			}
		}
		if got := e.remaining(); got != "" {
			t.Errorf("%q is left in the end", got)
		}
	})
}
