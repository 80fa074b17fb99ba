package pause

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
)

// must returns a function that returns the changed list, and ends the test on an error.
func must(t *testing.T) func(*List, error) *List {
	return func(l *List, err error) *List {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
}

// TestOldestMatchingPauseApplies: all messages for a paused target join one lane, even if several pauses match.
func TestOldestMatchingPauseApplies(t *testing.T) {
	now, ok := time.Unix(1000, 0), must(t)
	var none *List
	l := ok(none.Pause("orders.*", Hours{}, now))
	l = ok(l.Pause("orders.>", Hours{}, now)) // at the same instant
	first, second := l.Pauses[0].ID, l.Pauses[1].ID
	if first == second {
		t.Fatalf("two pauses have the id %s", first)
	}
	l = ok(l.Resume("orders.*", now.Add(time.Second)))
	for _, tt := range []struct {
		target, own string
		id          string
		state       State
		stops       bool
	}{
		{"orders.x", "", first, Resuming, true},
		{"orders.x", first, second, Paused, true}, // released from the first pause, stopped by the second
		{"orders.x", second, "", Over, true},      // released from the second pause; the first is being resumed
		{"orders.x.y", "", second, Paused, true},
		{"orders.x.y", second, "", Over, true},
		{"mail.x", "", "", Over, false},
	} {
		if id, state := l.PauseOf(tt.target, tt.own); id != tt.id || state != tt.state {
			t.Errorf("%s from %q: %s, %s, want %s, %s", tt.target, tt.own, id, state, tt.id, tt.state)
		}
		if got := l.Stops(tt.target); got != tt.stops {
			t.Errorf("%s is stopped: %v, want %v", tt.target, got, tt.stops)
		}
	}
	if id, state := none.PauseOf("orders.x", ""); id != "" || state != Over || none.Stops("orders.x") {
		t.Errorf("without a list: %s, %s, want no pause", id, state)
	}
}

// TestListChanges: a list refuses invalid changes. Its version increases even if the clock of a writer is behind.
func TestListChanges(t *testing.T) {
	now, ok := time.Unix(1000, 0), must(t)
	var none *List
	l := ok(none.Pause("a.>", Hours{}, now))
	if _, err := l.Pause("a.>", Hours{}, now); !errors.Is(err, ErrPaused) {
		t.Errorf("paused twice: %v, want %v", err, ErrPaused)
	}
	if _, err := l.Resume("a.b", now); !errors.Is(err, ErrNotPaused) {
		t.Errorf("a part of the pattern resumed: %v, want %v", err, ErrNotPaused)
	}
	resumed := ok(l.Resume("a.>", now.Add(-time.Hour))) // by a clock that is behind
	if resumed.Version <= l.Version {
		t.Errorf("version %d follows version %d, want a higher one", resumed.Version, l.Version)
	}
	if _, err := resumed.Resume("a.>", now); !errors.Is(err, errResuming) {
		t.Errorf("resumed twice: %v, want %v", err, errResuming)
	}
	again := ok(resumed.Pause("a.>", Hours{}, now.Add(time.Minute)))
	if p := again.Pauses[0]; len(again.Pauses) != 1 || p.ID != l.Pauses[0].ID || p.State != Paused ||
		!p.Since.Equal(now.Add(time.Minute)) {
		t.Errorf("paused again: %+v, want the same lane", again)
	}
	over := again.Set(again.Pauses[0].ID, Over, now)
	if got := ok(over.Pause("a.>", Hours{}, now.Add(time.Minute))); len(got.Pauses) != 2 ||
		got.Pauses[0].ID == got.Pauses[1].ID {
		t.Errorf("paused after the end of the first pause: %+v, want another lane", got)
	}
	if got := ok(over.Pause("b.>", Hours{}, now.Add(2*keepOver))); len(got.Pauses) != 1 {
		t.Errorf("long after the end of a pause: %+v, want a list without that pause", got)
	}
	for n := len(l.Pauses); n < maxPauses; n++ {
		l = ok(l.Pause(fmt.Sprint("a.", n), Hours{}, now))
	}
	if _, err := l.Pause("one.more", Hours{}, now); !errors.Is(err, errTooMany) {
		t.Errorf("%d patterns and one more: %v, want %v", maxPauses, err, errTooMany)
	}
	read, err := parse(l.encode())
	if err != nil || read.Version != l.Version || !slices.Equal(read.Pauses, l.Pauses) {
		t.Errorf("decoded: %+v, %v; want %+v", read, err, l)
	}
	for _, bad := range []string{"", "{}x", `{"stream":"DELAY_1m","seq":7}`,
		`{"version":0,"pauses":[{"id":"a","pattern":"x"}]}`,
		`{"version":1,"pauses":[{"id":"","pattern":"x"}]}`, `{"version":1,"pauses":[{"id":"a","pattern":"x..y"}]}`} {
		if got, err := parse([]byte(bad)); err == nil {
			t.Errorf("%q: got the list %+v, want an error", bad, got)
		}
	}
}

// TestLastOverIsKept: of the pauses that are over, a list keeps those that ended last, even if they began first.
func TestLastOverIsKept(t *testing.T) {
	now := time.Now()
	l, err := (*List)(nil).Pause("first.>", Hours{}, now)
	if err != nil {
		t.Fatal(err)
	}
	first := l.Pauses[0].ID
	for n := range maxOver {
		if l, err = l.Pause(fmt.Sprint("other.", n), Hours{}, now); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Second)
		l = l.Set(l.Pauses[len(l.Pauses)-1].ID, Over, now)
	}
	l = l.Set(first, Over, now.Add(time.Second))
	if l, err = l.Pause("mail.>", Hours{}, now.Add(2*time.Second)); err != nil {
		t.Fatal(err)
	}
	if p, ok := l.Get(first); !ok || p.State != Over {
		t.Errorf("the pause that ended a second ago: %+v, %v, want a pause that is over", p, ok)
	}
	if got := len(l.Pauses) - len(l.Present()); got != maxOver {
		t.Errorf("the list has %d pauses that are over, want %d", got, maxOver)
	}
}
