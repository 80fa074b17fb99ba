package bench

import (
	"fmt"
	"strings"
	"time"
)

// An Arrival is a message at its target.
type Arrival struct {
	Number uint32
	At     time.Time // when it was stored, by the server's clock, or received
	Due    time.Time // as it was asked for
	// Promised is when it may arrive at the earliest, if whoever delayed it says so: a delay begins when the first stream
	// stored the message, a little after it was asked for. Zero where it is not said.
	Promised time.Time
	Received bool // by a plain subscriber, so At is by our clock
}

// A Tally says what became of the accepted messages.
type Tally struct {
	Count   int `json:"count"` // accepted
	Lost    int `json:"lost"`
	Early   int `json:"early"`
	Twice   int `json:"twice"`   // copies of one that had arrived
	Unknown int `json:"unknown"` // of no message that was published, or of a timer that was cancelled
}

// add adds those of another phase.
func (t *Tally) add(other Tally) {
	t.Count += other.Count
	t.Lost += other.Lost
	t.Early += other.Early
	t.Twice += other.Twice
	t.Unknown += other.Unknown
}

// Err is not nil if a promise was broken: anything lost or early, and what nobody published. Copies are allowed.
func (t Tally) Err() error {
	var words []string
	for _, bad := range []struct {
		count int
		is    string
	}{{t.Lost, "lost"}, {t.Early, "early"}, {t.Unknown, "unknown"}} {
		if bad.count > 0 {
			words = append(words, fmt.Sprintf("%d %s", bad.count, bad.is))
		}
	}
	if len(words) == 0 {
		return nil
	}
	return fmt.Errorf("%w: of %d accepted messages %s", ErrBroken, t.Count, strings.Join(words, ", "))
}

// A Ledger counts what arrives of a number of accepted messages. It is for one goroutine.
type Ledger struct {
	tally  Tally
	within time.Duration
	seen   []bool
	there  int // of seen
	first  time.Time
	last   time.Time // when the first and the last arrived
	// Late is by what was asked for, Promised by what was promised. Copies are in neither.
	Late, Promised *Lateness
	// Plain is the number of the first message that is beside those to be measured. It is in Beside, and not in Late. Zero
	// is none.
	Plain  int
	Beside *Lateness
}

// NewLedger makes a ledger for messages numbered from zero. What was asked for is in the time of a clock that agrees
// with the server's within a duration: nothing is called early for less.
func NewLedger(count int, within time.Duration) *Ledger {
	return &Ledger{
		tally: Tally{Count: count}, within: within, seen: make([]bool, count),
		Late: NewLateness(), Promised: NewLateness(), Beside: NewLateness(),
	}
}

// Note counts an arrival.
func (l *Ledger) Note(a Arrival) {
	if int64(a.Number) >= int64(len(l.seen)) {
		l.tally.Unknown++
		return
	}
	if l.early(a) {
		l.tally.Early++
	}
	if l.seen[a.Number] {
		l.tally.Twice++
		return
	}
	l.seen[a.Number] = true
	l.there++
	if l.there == 1 || a.At.Before(l.first) {
		l.first = a.At
	}
	if a.At.After(l.last) {
		l.last = a.At
	}
	late := l.Late
	if l.Plain > 0 && int(a.Number) >= l.Plain {
		late = l.Beside
	}
	late.Record(a.At.Sub(a.Due))
	if !a.Promised.IsZero() {
		l.Promised.Record(a.At.Sub(a.Promised))
	}
}

// early goes by the promise where both times are of servers: then no doubt about our clock comes in.
func (l *Ledger) early(a Arrival) bool {
	promised := a.Promised
	if a.Received && !promised.IsZero() {
		promised = promised.Add(-l.within)
	}
	return a.At.Before(a.Due.Add(-l.within)) || a.At.Before(promised)
}

// Foreign counts what arrived at a target and is no message of the run.
func (l *Ledger) Foreign() { l.tally.Unknown++ }

// Arrived is how many of the messages have arrived, copies not counted.
func (l *Ledger) Arrived() int { return l.there }

// Rate is how many arrived a second, from the first to the last.
func (l *Ledger) Rate() float64 {
	if took := l.last.Sub(l.first); took > 0 {
		return float64(l.there-1) / took.Seconds()
	}
	return 0
}

// Tally is what came of them, if nothing more arrives.
func (l *Ledger) Tally() Tally {
	t := l.tally
	t.Lost = t.Count - l.there
	return t
}
