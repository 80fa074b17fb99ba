package linear

import "testing"

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
