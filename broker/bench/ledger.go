package bench

import (
	"fmt"
	"strings"
	"time"
)

// An Arrival is a message at its target.
type Arrival struct {
	Number uint32
	At     time.Time // time of storage, by the server's clock, or time of receipt
	Due    time.Time // as the publisher requested
	// Promised is the due time that the broker wrote into the headers, or zero. It is a little after Due, since a delay
	// begins when the first stream has stored the message.
	Promised time.Time
	Received bool // a plain subscriber received it, so At comes from the local clock
}

// A Tally is the number of accepted messages by outcome.
type Tally struct {
	Count   int `json:"count"` // accepted
	Lost    int `json:"lost"`
	Early   int `json:"early"`
	Twice   int `json:"twice"`   // duplicates of a message that had arrived
	Unknown int `json:"unknown"` // arrivals of messages that were not published, or of cancelled timers
}

// add adds the tally of another phase.
func (t *Tally) add(other Tally) {
	t.Count += other.Count
	t.Lost += other.Lost
	t.Early += other.Early
	t.Twice += other.Twice
	t.Unknown += other.Unknown
}

// Err returns ErrBroken with the numbers of lost, early and unknown messages, or nil. Duplicates are allowed.
func (t Tally) Err() error {
	var words []string
	for _, outcome := range []struct {
		count int
		name  string
	}{{t.Lost, "lost"}, {t.Early, "early"}, {t.Unknown, "unknown"}} {
		if outcome.count > 0 {
			words = append(words, fmt.Sprintf("%d %s", outcome.count, outcome.name))
		}
	}
	if len(words) == 0 {
		return nil
	}
	return fmt.Errorf("%w: of %d accepted messages %s", ErrBroken, t.Count, strings.Join(words, ", "))
}

// A Ledger counts the arrivals of accepted messages. It is for one goroutine.
type Ledger struct {
	tally      Tally
	clockError time.Duration // see NewLedger
	seen       []bool        // by number
	arrived    int           // number of true values in seen
	first      time.Time
	last       time.Time // first and last arrival
	// Late is the lateness relative to the requested time, Promised relative to the promised time. Duplicates are in
	// neither.
	Late, Promised *Lateness
	// Plain is the number of the first plain message, or zero if there are none. The lateness of plain messages is in
	// PlainLate, and not in Late.
	Plain     int
	PlainLate *Lateness
}

// NewLedger returns a ledger for messages numbered from zero. ClockError is the maximum difference between the clock of
// the requested times and that of the arrivals. An arrival that is early by at most ClockError does not count as early.
func NewLedger(count int, clockError time.Duration) *Ledger {
	return &Ledger{
		tally: Tally{Count: count}, clockError: clockError, seen: make([]bool, count),
		Late: NewLateness(), Promised: NewLateness(), PlainLate: NewLateness(),
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
	l.arrived++
	if l.arrived == 1 || a.At.Before(l.first) {
		l.first = a.At
	}
	if a.At.After(l.last) {
		l.last = a.At
	}
	late := l.Late
	if l.Plain > 0 && int(a.Number) >= l.Plain {
		late = l.PlainLate
	}
	late.Record(a.At.Sub(a.Due))
	if !a.Promised.IsZero() {
		l.Promised.Record(a.At.Sub(a.Promised))
	}
}

// early reports whether a message arrived too early. If both times come from servers, there is no margin.
func (l *Ledger) early(a Arrival) bool {
	promised := a.Promised
	if a.Received && !promised.IsZero() {
		promised = promised.Add(-l.clockError)
	}
	return a.At.Before(a.Due.Add(-l.clockError)) || a.At.Before(promised)
}

// Arrived returns the number of messages that have arrived, without duplicates.
func (l *Ledger) Arrived() int { return l.arrived }

// Rate returns the average number of arrivals per second between the first and the last.
func (l *Ledger) Rate() float64 {
	if took := l.last.Sub(l.first); took > 0 {
		return float64(l.arrived-1) / took.Seconds()
	}
	return 0
}

// Tally returns the counts. It counts each message that has not arrived as lost.
func (l *Ledger) Tally() Tally {
	t := l.tally
	t.Lost = t.Count - l.arrived
	return t
}
