package linear

import (
	"slices"
	"testing"
	"time"
)

// at returns a time of call and a time of return. The parameters are nanoseconds after a fixed start.
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

func unanswered(kind Kind, expects int64, from int) Op {
	o := op(kind, expects, 0, from, from)
	o.Result = Unknown
	return o
}

// brokerCancel returns a cancel by a request to a broker, which answers "cancelled".
func brokerCancel(expects int64, from int) Op {
	o := op(Cancel, expects, 0, from, from+1)
	o.Result = Done
	return o
}

var (
	set, fire = op(Set, 0, 1, 0, 1), op(Fire, 0, 1, 0, 20)
	high, low = op(Set, -1, 5, 0, 1), op(Set, -1, 2, 3, 4)
	late      = op(Cancel, 1, 0, 10, 11)
)

// explainCases has lists of operations. The field want is true if there is an order in which all answers are correct.
var explainCases = map[string]struct {
	ops  []Op
	want bool
}{
	"fires":                              {[]Op{set, fire}, true},
	"never fires":                        {[]Op{set}, false},
	"fires twice":                        {[]Op{set, fire, fire}, false},
	"is cancelled":                       {[]Op{set, op(Cancel, 1, 2, 10, 11)}, true},
	"fires, and is cancelled":            {[]Op{set, fire, op(Cancel, 1, 3, 10, 11)}, false},
	"fires, and is cancelled regardless": {[]Op{set, fire, op(Cancel, -1, 3, 10, 11)}, true},
	"refused cancel, fires":              {[]Op{set, fire, op(Cancel, 1, 0, 10, 11)}, true},
	"refused cancel, never fires":        {[]Op{set, op(Cancel, 1, 0, 10, 11)}, false},
	"refused cancel before the firing":   {[]Op{set, op(Fire, 0, 1, 15, 20), op(Cancel, 1, 0, 10, 11)}, false},
	"moved, and both fire":               {[]Op{set, fire, op(Set, 1, 2, 5, 6), op(Fire, 0, 2, 6, 30)}, false},
	"moved":                              {[]Op{set, op(Set, 1, 2, 5, 6), op(Fire, 0, 2, 6, 30)}, true},
	"moved and cancelled":                {[]Op{set, op(Set, 1, 2, 5, 7), op(Cancel, 1, 3, 5, 7)}, false},
	"set if absent, while pending":       {[]Op{set, op(Set, 0, 2, 5, 6), op(Fire, 0, 2, 6, 30)}, false},
	"set if absent, after the firing":    {[]Op{set, fire, op(Set, 0, 3, 15, 16), op(Fire, 0, 3, 16, 30)}, true},
	"sequences fall":                     {[]Op{high, low, op(Fire, 0, 2, 5, 6)}, false},

	"unanswered set fires":                 {[]Op{unanswered(Set, 0, 0), op(Fire, 0, 1, 0, 20)}, true},
	"unanswered set never fires":           {[]Op{unanswered(Set, 0, 0)}, true},
	"unanswered set fires twice":           {[]Op{unanswered(Set, 0, 0), fire, op(Fire, 0, 2, 0, 20)}, false},
	"unanswered set fires before its call": {[]Op{unanswered(Set, 0, 30), fire}, false},
	"unanswered cancel":                    {[]Op{set, unanswered(Cancel, 1, 10)}, true},
	"unanswered cancel without effect":     {[]Op{set, fire, unanswered(Cancel, 1, 10)}, true},
	"unanswered cancel, stored later":      {[]Op{set, unanswered(Cancel, 1, 2), op(Cancel, 1, 0, 50, 51)}, true},
	"unanswered cancel of another":         {[]Op{set, unanswered(Cancel, 2, 10)}, false},
	"unanswered move":                      {[]Op{set, unanswered(Set, 1, 5), op(Fire, 0, 3, 6, 30), late}, true},
	"unanswered move, and both fire":       {[]Op{set, unanswered(Set, 1, 5), op(Fire, 0, 3, 6, 30), fire}, false},
	"unanswered set, and another":          {[]Op{unanswered(Set, -1, 2), set, op(Fire, 0, 1, 2, 3)}, true},

	"cancelled again by a broker": {[]Op{set, op(Cancel, 1, 2, 5, 6), brokerCancel(1, 10)}, true},
	"cancelled again, after another set": {
		[]Op{set, op(Cancel, 1, 2, 2, 3), op(Set, -1, 3, 4, 5), brokerCancel(1, 10), op(Fire, 0, 3, 6, 30)}, true},
	"replaced, and reported as cancelled": {
		[]Op{set, op(Set, -1, 3, 4, 5), brokerCancel(1, 10), op(Fire, 0, 3, 6, 30)}, false},
	"cancelled twice by a broker":    {[]Op{set, brokerCancel(1, 5), brokerCancel(1, 10)}, true},
	"moved, and cancelled before":    {[]Op{set, op(Set, 1, 2, 5, 6), brokerCancel(1, 10), brokerCancel(2, 12)}, false},
	"cancelled by a broker too late": {[]Op{set, fire, brokerCancel(1, 30)}, false},

	"fired, replaced, not delivered":  {[]Op{set, late, op(Set, -1, 4, 12, 13), op(Fire, 0, 4, 13, 30)}, false},
	"fired, cancelled, not delivered": {[]Op{set, late, op(Cancel, -1, 4, 12, 13)}, false},
	"fired, replaced, delivered":      {[]Op{set, fire, late, op(Set, -1, 4, 12, 13), op(Fire, 0, 4, 13, 30)}, true},
	"fired, set if absent":            {[]Op{set, late, op(Set, 0, 4, 12, 13), op(Fire, 0, 4, 13, 30)}, false},
}

// TestExplain: Explain finds an order exactly for the possible histories.
func TestExplain(t *testing.T) {
	t.Parallel()
	for name, tt := range explainCases {
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

// seriesSet returns the set of a series of three rounds.
func seriesSet(expects int64, sequence uint64, from int) Op {
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
	begin                = seriesSet(0, 1, 0)
	first, second, third = round(1, 1, 0, 10), round(2, 2, 10, 20), round(3, 3, 20, 30)
	stopped              = op(Cancel, AnyState, 9, 21, 22)
	paused               = op(Pause, AnyPending, 2, 12, 13)
)

// TestExplainSeries: the rounds of a series must be delivered once and in order, until the series is stopped.
func TestExplainSeries(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		ops  []Op
		want bool
	}{
		"all rounds":                 {[]Op{begin, first, second, third}, true},
		"last round missing":         {[]Op{begin, first, second}, false},
		"round missing between":      {[]Op{begin, first, third}, false},
		"extra round":                {[]Op{begin, first, second, third, round(4, 4, 30, 40)}, false},
		"round delivered twice":      {[]Op{begin, first, second, round(2, 4, 10, 25), third}, false},
		"round of another series":    {[]Op{seriesSet(0, 5, 0), round(1, 6, 1, 9)}, false},
		"cancelled after two rounds": {[]Op{begin, first, second, stopped}, true},
		"cancelled, and a round comes": {
			[]Op{begin, first, second, op(Cancel, AnyPending, 9, 15, 19), third}, false},
		"cancelled after the last firing": {
			[]Op{begin, first, second, third, op(Cancel, AnyState, 9, 25, 26)}, true},
		"fired round cancelled":            {[]Op{begin, first, op(Cancel, 1, 9, 15, 16)}, false},
		"refused cancel":                   {[]Op{begin, first, op(Cancel, 1, 0, 15, 16), second, third}, true},
		"refused cancel without the round": {[]Op{begin, op(Cancel, 1, 0, 15, 16), stopped}, false},
		"refused move at the end": {
			[]Op{begin, first, second, third, op(Move, AnyPending, 0, 40, 41)}, true},
		"refused move between rounds": {
			[]Op{begin, first, op(Move, AnyPending, 0, 12, 13), second, third}, false},
		"moved":           {[]Op{begin, first, op(Move, AnyPending, 2, 12, 13), second, third}, true},
		"unanswered move": {[]Op{begin, first, unanswered(Move, AnyPending, 12), second, third}, true},
		"moved, with a lost round": {
			[]Op{begin, first, op(Move, 1, 5, 2, 3), round(2, 6, 10, 20), round(3, 7, 20, 30)}, false},
		"paused at the end": {[]Op{begin, first, paused}, true},
		"round during a pause": {
			[]Op{begin, first, op(Pause, AnyPending, 2, 5, 6), second, third}, false},
		"resumed": {
			[]Op{begin, first, paused, op(Move, 2, 3, 14, 15), round(2, 3, 15, 20), round(3, 4, 20, 30)}, true},
		"resumed, without a round": {[]Op{begin, first, paused, op(Move, 2, 3, 14, 15)}, false},
		"resumed without a pause": {
			[]Op{begin, op(Move, AnyPending, 1, 2, 3), first, second, third}, true},
		"resumed with the generation of the pause": {
			[]Op{begin, first, paused, op(Move, 2, 2, 14, 15), round(2, 2, 15, 20), round(3, 4, 20, 30)}, false},
		"retimed while paused": {[]Op{begin, first, paused, op(Retime, 2, 3, 14, 15)}, true},
		"retimed while paused, with a round": {
			[]Op{begin, first, paused, op(Retime, 2, 3, 14, 15), round(2, 3, 15, 20), stopped}, false},
		"paused twice": {[]Op{begin, op(Pause, 1, 2, 2, 3), op(Pause, AnyPending, 2, 4, 5)}, true},
		"set again": {[]Op{seriesSet(0, 7, 0), seriesSet(AnyState, 8, 2), op(Cancel, AnyState, 9, 30, 31)},
			true},
		"series after a timer":     {[]Op{set, fire, seriesSet(AnyState, 2, 22), op(Cancel, 2, 3, 25, 26)}, true},
		"delivery without a round": {[]Op{begin, fire, stopped}, false},
	} {
		check(t, name, tt.ops, tt.want)
	}
}
