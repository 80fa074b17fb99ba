package test

import (
	"slices"
	"testing"
	"time"
)

// A timerOp is what one client has asked of one key, or a delivery. The ops of a key, each somewhere between its call
// and its return, must have an order in which every answer is right.
type timerOp struct {
	kind          string // set, cancel or fire
	expects       int64  // generation, 0 for none, -1 for whatever there is
	sequence      uint64 // of the entry, zero if it was refused; of a delivery, its generation
	call, return_ time.Time
}

// keyState is what a key's last entry is. What has fired or was cancelled may be forgotten at any time.
type keyState struct {
	last    uint64 // sequence of the last set or cancel, zero before the first
	pending bool
}

// after returns the state after an op, or false if the op cannot have this answer there.
func (s keyState) after(o timerOp) (keyState, bool) {
	if o.kind == "fire" {
		return keyState{last: s.last}, s.pending && s.last == o.sequence
	}
	fits := o.expects < 0 || o.expects == 0 && !s.pending || s.pending && uint64(o.expects) == s.last
	if o.sequence == 0 {
		// What has fired may not be forgotten yet, so that "only if there is none" is refused.
		return s, !fits || o.expects == 0 && s.last > 0
	}
	return keyState{last: o.sequence, pending: o.kind == "set"}, fits && o.sequence > s.last
}

// linearizable reports whether there is such an order, at whose end nothing is pending.
func linearizable(ops []timerOp) bool {
	type node struct {
		done  uint64
		state keyState
	}
	seen := make(map[node]bool)
	var search func(node) bool
	search = func(n node) bool {
		if n.done == 1<<len(ops)-1 {
			return !n.state.pending
		}
		if seen[n] {
			return false
		}
		seen[n] = true
		var first time.Time // the earliest return of what is not done: nothing that was called later may come before it
		for i, o := range ops {
			if n.done&(1<<i) == 0 && (first.IsZero() || o.return_.Before(first)) {
				first = o.return_
			}
		}
		for i, o := range ops {
			if n.done&(1<<i) != 0 || o.call.After(first) {
				continue
			}
			if state, ok := n.state.after(o); ok && search(node{n.done | 1<<i, state}) {
				return true
			}
		}
		return false
	}
	return search(node{})
}

// TestLinearizable: the check of races finds what is wrong.
func TestLinearizable(t *testing.T) {
	t.Parallel()
	at := func(from, to int) (time.Time, time.Time) {
		start := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
		return start.Add(time.Duration(from)), start.Add(time.Duration(to))
	}
	op := func(kind string, expects int64, sequence uint64, from, to int) timerOp {
		o := timerOp{kind: kind, expects: expects, sequence: sequence}
		o.call, o.return_ = at(from, to)
		return o
	}
	set, fire := op("set", 0, 1, 0, 1), op("fire", 0, 1, 0, 20)
	high, low := op("set", -1, 5, 0, 1), op("set", -1, 2, 3, 4)
	for name, tt := range map[string]struct {
		ops  []timerOp
		want bool
	}{
		"fires":                             {[]timerOp{set, fire}, true},
		"never fires":                       {[]timerOp{set}, false},
		"fires twice":                       {[]timerOp{set, fire, fire}, false},
		"is cancelled":                      {[]timerOp{set, op("cancel", 1, 2, 10, 11)}, true},
		"fires and is cancelled":            {[]timerOp{set, fire, op("cancel", 1, 3, 10, 11)}, false},
		"fires and is cancelled, no matter": {[]timerOp{set, fire, op("cancel", -1, 3, 10, 11)}, true},
		"too late, and fires":               {[]timerOp{set, fire, op("cancel", 1, 0, 10, 11)}, true},
		"too late, and does not":            {[]timerOp{set, op("cancel", 1, 0, 10, 11)}, false},
		"too late before it can fire":       {[]timerOp{set, op("fire", 0, 1, 15, 20), op("cancel", 1, 0, 10, 11)}, false},
		"moved, and both fire":              {[]timerOp{set, fire, op("set", 1, 2, 5, 6), op("fire", 0, 2, 6, 30)}, false},
		"moved":                             {[]timerOp{set, op("set", 1, 2, 5, 6), op("fire", 0, 2, 6, 30)}, true},
		"moved and cancelled":               {[]timerOp{set, op("set", 1, 2, 5, 7), op("cancel", 1, 3, 5, 7)}, false},
		"set when there was none":           {[]timerOp{set, op("set", 0, 2, 5, 6), op("fire", 0, 2, 6, 30)}, false},
		"set when it was over":              {[]timerOp{set, fire, op("set", 0, 3, 15, 16), op("fire", 0, 3, 16, 30)}, true},
		"sequences fall":                    {[]timerOp{high, low, op("fire", 0, 2, 5, 6)}, false},
	} {
		for range 2 { // whatever the order in which they are given
			if got := linearizable(tt.ops); got != tt.want {
				t.Errorf("%s: %t, want %t", name, got, tt.want)
			}
			slices.Reverse(tt.ops)
		}
	}
}
