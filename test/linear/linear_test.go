package linear

import (
	"slices"
	"testing"
	"time"
)

// at returns a time of call and a time of return, in nanoseconds after a fixed start.
func at(from, to int) (time.Time, time.Time) {
	start := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	return start.Add(time.Duration(from)), start.Add(time.Duration(to))
}

// op returns a completed operation. Without a sequence, its result is Refused.
func op(kind Kind, expects int64, sequence uint64, from, to int) Op {
	o := Op{Kind: kind, Expects: expects, Result: Done, Sequence: sequence}
	if sequence == 0 {
		o.Result = Refused
	}
	o.Call, o.Return = at(from, to)
	return o
}

// unanswered returns an operation without an answer.
func unanswered(kind Kind, expects int64, from int) Op {
	o := op(kind, expects, 0, from, from)
	o.Result = Unknown
	return o
}

// asked returns a cancel by a request to a broker, which answers "cancelled".
func asked(expects int64, from int) Op {
	o := op(Cancel, expects, 0, from, from+1)
	o.Result = Done
	return o
}

var (
	set, fire = op(Set, 0, 1, 0, 1), op(Fire, 0, 1, 0, 20)
	high, low = op(Set, -1, 5, 0, 1), op(Set, -1, 2, 3, 4)
	late      = op(Cancel, 1, 0, 10, 11)
)

// explained has lists of operations. The want is true if some order explains them.
var explained = map[string]struct {
	ops  []Op
	want bool
}{
	"fires":                             {[]Op{set, fire}, true},
	"never fires":                       {[]Op{set}, false},
	"fires twice":                       {[]Op{set, fire, fire}, false},
	"is cancelled":                      {[]Op{set, op(Cancel, 1, 2, 10, 11)}, true},
	"fires and is cancelled":            {[]Op{set, fire, op(Cancel, 1, 3, 10, 11)}, false},
	"fires and is cancelled, no matter": {[]Op{set, fire, op(Cancel, -1, 3, 10, 11)}, true},
	"too late, and fires":               {[]Op{set, fire, op(Cancel, 1, 0, 10, 11)}, true},
	"too late, and does not":            {[]Op{set, op(Cancel, 1, 0, 10, 11)}, false},
	"too late before it can fire":       {[]Op{set, op(Fire, 0, 1, 15, 20), op(Cancel, 1, 0, 10, 11)}, false},
	"moved, and both fire":              {[]Op{set, fire, op(Set, 1, 2, 5, 6), op(Fire, 0, 2, 6, 30)}, false},
	"moved":                             {[]Op{set, op(Set, 1, 2, 5, 6), op(Fire, 0, 2, 6, 30)}, true},
	"moved and cancelled":               {[]Op{set, op(Set, 1, 2, 5, 7), op(Cancel, 1, 3, 5, 7)}, false},
	"set when there was none":           {[]Op{set, op(Set, 0, 2, 5, 6), op(Fire, 0, 2, 6, 30)}, false},
	"set when it was over":              {[]Op{set, fire, op(Set, 0, 3, 15, 16), op(Fire, 0, 3, 16, 30)}, true},
	"sequences fall":                    {[]Op{high, low, op(Fire, 0, 2, 5, 6)}, false},

	"a set without an answer fires":             {[]Op{unanswered(Set, 0, 0), op(Fire, 0, 1, 0, 20)}, true},
	"it does not":                               {[]Op{unanswered(Set, 0, 0)}, true},
	"it fires twice":                            {[]Op{unanswered(Set, 0, 0), fire, op(Fire, 0, 2, 0, 20)}, false},
	"it fires before it was sent":               {[]Op{unanswered(Set, 0, 30), fire}, false},
	"a cancel without an answer":                {[]Op{set, unanswered(Cancel, 1, 10)}, true},
	"it has no effect":                          {[]Op{set, fire, unanswered(Cancel, 1, 10)}, true},
	"it was stored long after":                  {[]Op{set, unanswered(Cancel, 1, 2), op(Cancel, 1, 0, 50, 51)}, true},
	"it expects another":                        {[]Op{set, unanswered(Cancel, 2, 10)}, false},
	"a move without an answer":                  {[]Op{set, unanswered(Set, 1, 5), op(Fire, 0, 3, 6, 30), late}, true},
	"it and what it moved fire":                 {[]Op{set, unanswered(Set, 1, 5), op(Fire, 0, 3, 6, 30), fire}, false},
	"a set without an answer is told otherwise": {[]Op{unanswered(Set, -1, 2), set, op(Fire, 0, 1, 2, 3)}, true},

	"cancelled again by a broker": {[]Op{set, op(Cancel, 1, 2, 5, 6), asked(1, 10)}, true},
	"and set anew": {
		[]Op{set, op(Cancel, 1, 2, 2, 3), op(Set, -1, 3, 4, 5), asked(1, 10), op(Fire, 0, 3, 6, 30)}, true},
	"replaced, and called cancelled": {
		[]Op{set, op(Set, -1, 3, 4, 5), asked(1, 10), op(Fire, 0, 3, 6, 30)}, false},
	"asked first": {[]Op{set, asked(1, 5), asked(1, 10)}, true},
	"cancelled again, and another stands there": {[]Op{set, op(Set, 1, 2, 5, 6), asked(1, 10), asked(2, 12)}, false},
	"cancelled again after it has fired":        {[]Op{set, fire, asked(1, 30)}, false},

	"decided, replaced, not delivered":  {[]Op{set, late, op(Set, -1, 4, 12, 13), op(Fire, 0, 4, 13, 30)}, false},
	"decided, cancelled, not delivered": {[]Op{set, late, op(Cancel, -1, 4, 12, 13)}, false},
	"decided, replaced, delivered": {
		[]Op{set, fire, late, op(Set, -1, 4, 12, 13), op(Fire, 0, 4, 13, 30)}, true},
	"decided and replaced where none had been": {[]Op{set, late, op(Set, 0, 4, 12, 13), op(Fire, 0, 4, 13, 30)}, false},
}

// TestExplain: Explain finds an order exactly for the histories that are possible.
func TestExplain(t *testing.T) {
	t.Parallel()
	for name, tt := range explained {
		check(t, name, tt.ops, tt.want)
	}
}

// check compares the result of Explain, for the operations in the given order and in the reverse order.
func check(t *testing.T, name string, ops []Op, want bool) {
	t.Helper()
	for range 2 {
		if got := Explain(ops); got != want {
			t.Errorf("%s: %t, want %t", name, got, want)
		}
		slices.Reverse(ops)
	}
}
