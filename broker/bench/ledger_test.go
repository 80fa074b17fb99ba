package bench

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// due is the due time of all messages.
var due = time.Unix(1_700_000_000, 0)

// on returns the arrival of a message with a lateness.
func on(number uint32, late time.Duration) Arrival {
	return Arrival{Number: number, Due: due, At: due.Add(late)}
}

// ledgers are arrivals of three messages, each with its tally.
var ledgers = []struct {
	name     string
	arrivals []Arrival
	within   time.Duration
	want     Tally
	broken   string // part of the error; empty for none
}{
	{name: "all on time", arrivals: []Arrival{on(0, 0), on(2, 1), on(1, 2)}, want: Tally{Count: 3}},
	{name: "one lost", arrivals: []Arrival{on(0, 0), on(2, 1)}, want: Tally{Count: 3, Lost: 1}, broken: "1 lost"},
	{name: "nothing arrived", want: Tally{Count: 3, Lost: 3}, broken: "3 lost"},
	{
		name: "one early", arrivals: []Arrival{on(0, 0), on(1, -1), on(2, 1)}, want: Tally{Count: 3, Early: 1},
		broken: "1 early",
	},
	{name: "one twice", arrivals: []Arrival{on(0, 0), on(1, 1), on(0, 5), on(2, 1)}, want: Tally{Count: 3, Twice: 1}},
	{
		name: "a copy is early", arrivals: []Arrival{on(0, 0), on(1, 1), on(0, -5), on(2, 1)},
		want: Tally{Count: 3, Early: 1, Twice: 1}, broken: "1 early",
	},
	{
		name: "a copy is not another message", arrivals: []Arrival{on(0, 0), on(1, 1), on(1, 1)},
		want: Tally{Count: 3, Lost: 1, Twice: 1}, broken: "1 lost",
	},
	{
		name: "one that nobody published", arrivals: []Arrival{on(0, 0), on(1, 1), on(2, 1), on(3, 1)},
		want: Tally{Count: 3, Unknown: 1}, broken: "1 unknown",
	},
	{
		name: "clocks known to a millisecond", within: time.Millisecond,
		arrivals: []Arrival{on(0, -time.Millisecond), on(1, -time.Millisecond-1), on(2, 1)},
		want:     Tally{Count: 3, Early: 1}, broken: "1 early",
	},
	{
		name: "before it was promised, by the servers' clocks", within: time.Second,
		arrivals: []Arrival{
			on(0, 0), on(1, 0), {Number: 2, Due: due, Promised: due.Add(10), At: due.Add(9)},
		},
		want: Tally{Count: 3, Early: 1}, broken: "1 early",
	},
	{
		name: "before it was promised, by our clock", within: 5,
		arrivals: []Arrival{
			on(0, 0), {Number: 1, Due: due, Promised: due.Add(10), At: due.Add(5), Received: true},
			{Number: 2, Due: due, Promised: due.Add(10), At: due.Add(4), Received: true},
		},
		want: Tally{Count: 3, Early: 1}, broken: "1 early",
	},
}

// The tally of each ledger matches.
func TestWhatIsLostEarlyOrTwiceIsCounted(t *testing.T) {
	for _, test := range ledgers {
		t.Run(test.name, func(t *testing.T) {
			l := NewLedger(3, test.within)
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

// A later copy does not change the lateness of its message.
func TestCopiesDoNotChangeLateness(t *testing.T) {
	due := time.Unix(1_700_000_000, 0)
	l := NewLedger(1, 0)
	l.Note(Arrival{Due: due, Promised: due.Add(time.Millisecond), At: due.Add(3 * time.Millisecond)})
	l.Note(Arrival{Due: due, Promised: due.Add(time.Millisecond), At: due.Add(time.Second)})
	if got, want := l.Late.Spread().Max, 3.0; got != want {
		t.Errorf("after it was asked for: got %v ms, want %v", got, want)
	}
	if got, want := l.Promised.Spread().Max, 2.0; got != want {
		t.Errorf("after it was promised: got %v ms, want %v", got, want)
	}
}

// The rate is that of the messages that arrived, in any order.
func TestArrivalsHaveARate(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	l := NewLedger(5, 0)
	if got := l.Rate(); got != 0 {
		t.Errorf("of none: got %v, want 0", got)
	}
	for number, ms := range []int{20, 0, 10, 30} {
		l.Note(Arrival{Number: uint32(number), Due: at, At: at.Add(time.Duration(ms) * time.Millisecond)})
	}
	l.Note(Arrival{Number: 1, Due: at, At: at.Add(time.Second)}) // a copy
	if got, want := l.Rate(), 100.0; got != want {
		t.Errorf("got %v a second, want %v", got, want)
	}
}

// Messages of another turn, or of another program, do not count as messages of this one.
func TestForeignMessagesAreUnknown(t *testing.T) {
	l := NewLedger(1, 0)
	now := time.Now()
	other, ours := ReadStamp(Stamp{Turn: 1, Due: now}.Payload(100))
	l.addArrival(2, other, ours, Arrival{At: now})
	none, ours := ReadStamp([]byte("hello"))
	l.addArrival(2, none, ours, Arrival{At: now})
	if got, want := l.Tally(), (Tally{Count: 1, Lost: 1, Unknown: 2}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
