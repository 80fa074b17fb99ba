package bench

import (
	"errors"
	"strings"
	"testing"
	"time"
)

var due = time.Unix(1_700_000_000, 0)

// arrival returns an arrival of the message with this number and this lateness.
func arrival(number uint32, late time.Duration) Arrival {
	return Arrival{Number: number, Due: due, Time: due.Add(late)}
}

// tallies are lists of arrivals of three messages, each with its tally.
var tallies = []struct {
	name       string
	arrivals   []Arrival
	clockError time.Duration
	want       Tally
	broken     string // part of the error; empty for no error
}{
	{name: "all on time", arrivals: []Arrival{arrival(0, 0), arrival(2, 1), arrival(1, 2)}, want: Tally{Count: 3}},
	{
		name: "one lost", arrivals: []Arrival{arrival(0, 0), arrival(2, 1)}, want: Tally{Count: 3, Lost: 1},
		broken: "1 lost",
	},
	{name: "nothing arrived", want: Tally{Count: 3, Lost: 3}, broken: "3 lost"},
	{
		name: "one early", arrivals: []Arrival{arrival(0, 0), arrival(1, -1), arrival(2, 1)}, want: Tally{Count: 3, Early: 1},
		broken: "1 early",
	},
	{
		name: "one duplicate", arrivals: []Arrival{arrival(0, 0), arrival(1, 1), arrival(0, 5), arrival(2, 1)},
		want: Tally{Count: 3, Twice: 1},
	},
	{
		name: "an early duplicate", arrivals: []Arrival{arrival(0, 0), arrival(1, 1), arrival(0, -5), arrival(2, 1)},
		want: Tally{Count: 3, Early: 1, Twice: 1}, broken: "1 early",
	},
	{
		name: "a duplicate beside a lost message", arrivals: []Arrival{arrival(0, 0), arrival(1, 1), arrival(1, 1)},
		want: Tally{Count: 3, Lost: 1, Twice: 1}, broken: "1 lost",
	},
	{
		name: "one unknown", arrivals: []Arrival{arrival(0, 0), arrival(1, 1), arrival(2, 1), arrival(3, 1)},
		want: Tally{Count: 3, Unknown: 1}, broken: "1 unknown",
	},
	{
		name: "a clock error of a millisecond", clockError: time.Millisecond,
		arrivals: []Arrival{arrival(0, -time.Millisecond), arrival(1, -time.Millisecond-1), arrival(2, 1)},
		want:     Tally{Count: 3, Early: 1}, broken: "1 early",
	},
	{
		name: "stored before the promised time: no margin", clockError: time.Second,
		arrivals: []Arrival{
			arrival(0, 0), arrival(1, 0), {Number: 2, Due: due, Promised: due.Add(10), Time: due.Add(9)},
		},
		want: Tally{Count: 3, Early: 1}, broken: "1 early",
	},
	{
		name: "received before the promised time: a margin", clockError: 5,
		arrivals: []Arrival{
			arrival(0, 0), {Number: 1, Due: due, Promised: due.Add(10), Time: due.Add(5), Received: true},
			{Number: 2, Due: due, Promised: due.Add(10), Time: due.Add(4), Received: true},
		},
		want: Tally{Count: 3, Early: 1}, broken: "1 early",
	},
}

func TestTally(t *testing.T) {
	for _, test := range tallies {
		t.Run(test.name, func(t *testing.T) {
			l := newLedger(3, test.clockError)
			for _, a := range test.arrivals {
				l.Note(a)
			}
			got := l.Tally()
			if got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
			err := got.Err()
			if test.broken == "" && err != nil {
				t.Errorf("got %v, want nil", err)
			}
			if test.broken != "" && (!errors.Is(err, ErrBroken) || !strings.Contains(err.Error(), test.broken)) {
				t.Errorf("got %v, want %v with %q", err, ErrBroken, test.broken)
			}
		})
	}
}

// A duplicate does not change the lateness of its message.
func TestLatenessWithoutDuplicates(t *testing.T) {
	due := time.Unix(1_700_000_000, 0)
	l := newLedger(1, 0)
	l.Note(Arrival{Due: due, Promised: due.Add(time.Millisecond), Time: due.Add(3 * time.Millisecond)})
	l.Note(Arrival{Due: due, Promised: due.Add(time.Millisecond), Time: due.Add(time.Second)})
	if got, want := l.Late.Spread().Max, 3.0; got != want {
		t.Errorf("relative to the requested time: got %v ms, want %v", got, want)
	}
	if got, want := l.Promised.Spread().Max, 2.0; got != want {
		t.Errorf("relative to the promised time: got %v ms, want %v", got, want)
	}
}

// The rate does not depend on the order of the arrivals, and does not count duplicates.
func TestRateOfArrivals(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	l := newLedger(5, 0)
	if got := l.Rate(); got != 0 {
		t.Errorf("without an arrival: got %v, want 0", got)
	}
	for number, ms := range []int{20, 0, 10, 30} {
		l.Note(Arrival{Number: uint32(number), Due: start, Time: start.Add(time.Duration(ms) * time.Millisecond)})
	}
	l.Note(Arrival{Number: 1, Due: start, Time: start.Add(time.Second)}) // a duplicate
	if got, want := l.Rate(), 100.0; got != want {
		t.Errorf("got %v a second, want %v", got, want)
	}
}

// A message of another turn, or of another program, counts as unknown.
func TestForeignMessagesAreUnknown(t *testing.T) {
	l := newLedger(1, 0)
	now := time.Now()
	for _, payload := range [][]byte{Stamp{Turn: 1, Due: now}.Payload(100), []byte("hello")} {
		stamp, stamped := ReadStamp(payload)
		l.addArrival(2, stamp, stamped, Arrival{Time: now})
	}
	if got, want := l.Tally(), (Tally{Count: 1, Lost: 1, Unknown: 2}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
