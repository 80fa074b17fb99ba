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

// every returns the set of a series of three rounds.
func every(expects int64, sequence uint64, from int) Op {
	o := op(Set, expects, sequence, from, from+1)
	o.Rounds = 3
	return o
}

// round returns the delivery of a round of the series with sequence 1.
func round(number int, sequence uint64, from, to int) Op {
	o := op(Fire, 0, sequence, from, to)
	o.Round, o.Series = number, 1
	return o
}

var (
	first, second, third = round(1, 1, 0, 10), round(2, 2, 10, 20), round(3, 3, 20, 30)
	stopped              = op(Cancel, Whatever, 9, 21, 22)
	paused               = op(Pause, Standing, 2, 12, 13)
)

// TestExplainSeries: the rounds of a series must be delivered once and in order, until the series is stopped.
func TestExplainSeries(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		ops  []Op
		want bool
	}{
		"all rounds":             {[]Op{every(0, 1, 0), first, second, third}, true},
		"the last is missing":    {[]Op{every(0, 1, 0), first, second}, false},
		"one between is missing": {[]Op{every(0, 1, 0), first, third}, false},
		"one more": {[]Op{
			every(0, 1, 0), first, second, third, round(4, 4, 30, 40),
		}, false},
		"one twice": {[]Op{
			every(0, 1, 0), first, second, round(2, 4, 10, 25), third,
		}, false},
		"one of another series": {[]Op{every(0, 5, 0), round(1, 6, 1, 9)}, false},
		"cancelled after two":   {[]Op{every(0, 1, 0), first, second, stopped}, true},
		"and the third comes": {[]Op{
			every(0, 1, 0), first, second, op(Cancel, Standing, 9, 15, 19), third,
		}, false},
		"and it was on its way": {[]Op{
			every(0, 1, 0), first, second, third, op(Cancel, Whatever, 9, 25, 26),
		}, true},
		"cancelled by what has fired": {[]Op{every(0, 1, 0), first, op(Cancel, 1, 9, 15, 16)}, false},
		"told that it was too late": {[]Op{
			every(0, 1, 0), first, op(Cancel, 1, 0, 15, 16), second, third,
		}, true},
		"told so, and it does not come": {[]Op{every(0, 1, 0), op(Cancel, 1, 0, 15, 16), stopped}, false},
		"none stands there": {[]Op{
			every(0, 1, 0), first, second, third, op(Move, Standing, 0, 40, 41),
		}, true},
		"one does, and it is told otherwise": {[]Op{
			every(0, 1, 0), first, op(Move, Standing, 0, 12, 13), second, third,
		}, false},
		"moved": {[]Op{
			every(0, 1, 0), first, op(Move, Standing, 2, 12, 13), second, third,
		}, true},
		"moved, and not told": {[]Op{
			every(0, 1, 0), first, unanswered(Move, Standing, 12), second, third,
		}, true},
		"moved, and what it was moved from comes, too": {
			[]Op{every(0, 1, 0), first, op(Move, 1, 5, 2, 3), round(2, 6, 10, 20), round(3, 7, 20, 30)}, false},
		"paused to the end": {[]Op{every(0, 1, 0), first, paused}, true},
		"a round of a pause": {[]Op{
			every(0, 1, 0), first, op(Pause, Standing, 2, 5, 6), second, third,
		}, false},
		"resumed": {[]Op{
			every(0, 1, 0), first, paused, op(Move, 2, 3, 14, 15), round(2, 3, 15, 20), round(3, 4, 20, 30),
		}, true},
		"resumed, and nothing comes": {[]Op{
			every(0, 1, 0), first, paused, op(Move, 2, 3, 14, 15),
		}, false},
		"resumed, and was not paused": {[]Op{
			every(0, 1, 0), op(Move, Standing, 1, 2, 3), first, second, third,
		}, true},
		"resumed, and is told of the pause": {[]Op{
			every(0, 1, 0), first, paused, op(Move, 2, 2, 14, 15), round(2, 2, 15, 20), round(3, 4, 20, 30),
		}, false},
		"another table of a pause": {[]Op{
			every(0, 1, 0), first, paused, op(Retime, 2, 3, 14, 15),
		}, true},
		"and a round comes": {[]Op{
			every(0, 1, 0), first, paused, op(Retime, 2, 3, 14, 15), round(2, 3, 15, 20), stopped,
		}, false},
		"paused again": {[]Op{
			every(0, 1, 0), op(Pause, 1, 2, 2, 3), op(Pause, Standing, 2, 4, 5),
		}, true},
		"set anew": {[]Op{
			every(0, 7, 0), every(Whatever, 8, 2), op(Cancel, Whatever, 9, 30, 31),
		}, true},
		"a series after one timer": {[]Op{
			set, fire, every(Whatever, 2, 22), op(Cancel, 2, 3, 25, 26),
		}, true},
		"its round comes as if it were none": {[]Op{every(0, 1, 0), fire, stopped}, false},
	} {
		check(t, name, tt.ops, tt.want)
	}
}
