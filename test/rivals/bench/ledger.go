package bench

import (
	"fmt"
	"strings"
	"time"
)

// An Arrival is a message at its target.
type Arrival struct {
	Number uint32
	Time   time.Time // time of the storage or of the receipt, by the server's clock
	Due    time.Time // the due time that the publisher requested
	// Promised is the due time in the header Delay-Due, or zero. It is later than Due if the publisher requested a
	// delay, which begins when the first stream has stored the message.
	Promised time.Time
	Received bool // Time is the time of receipt, converted from the local clock
}

// A Tally has the numbers of messages by outcome.
type Tally struct {
	Count   int `json:"count"`   // accepted messages
	Lost    int `json:"lost"`    // accepted messages that have not arrived
	Early   int `json:"early"`   // early arrivals
	Twice   int `json:"twice"`   // arrivals of duplicates
	Unknown int `json:"unknown"` // arrivals of cancelled timers, and of messages that are not of this turn
}

func (t *Tally) add(other Tally) {
	t.Count += other.Count
	t.Lost += other.Lost
	t.Early += other.Early
	t.Twice += other.Twice
	t.Unknown += other.Unknown
}

// Err returns an ErrBroken if messages are lost, early or unknown. Duplicates are allowed.
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
	return fmt.Errorf("%w: of %d accepted messages, %s", ErrBroken, t.Count, strings.Join(words, ", "))
}

// A Ledger counts the arrivals of accepted messages. It is not safe for concurrent use.
type Ledger struct {
	tally        Tally
	clockError   time.Duration // see newLedger
	seen         []bool        // by number
	arrived      int           // number of true values in seen
	firstArrival time.Time
	lastArrival  time.Time // without duplicates
	// Late has the lateness relative to Arrival.Due, and Promised the lateness relative to Arrival.Promised, both
	// without duplicates.
	Late, Promised *Lateness
	// If FirstPlain is not zero, the messages with lower numbers are timers, and all others are plain messages. Then Late
	// has the lateness of the timers, and PlainLate that of the plain messages.
	FirstPlain int
	PlainLate  *Lateness
}

// newLedger returns a ledger for messages that are numbered from zero. ClockError is the maximum error in the
// comparison of a local time with a time by the server's clock.
func newLedger(count int, clockError time.Duration) *Ledger {
	return &Ledger{
		tally: Tally{Count: count}, clockError: clockError, seen: make([]bool, count),
		Late: newLateness(), Promised: newLateness(), PlainLate: newLateness(),
	}
}

// Note adds an arrival.
func (l *Ledger) Note(a Arrival) {
	if int64(a.Number) >= int64(len(l.seen)) {
		l.tally.Unknown++
		return
	}
	if l.isEarly(a) {
		l.tally.Early++
	}
	if l.seen[a.Number] {
		l.tally.Twice++
		return
	}
	l.seen[a.Number] = true
	l.arrived++
	if l.arrived == 1 || a.Time.Before(l.firstArrival) {
		l.firstArrival = a.Time
	}
	if a.Time.After(l.lastArrival) {
		l.lastArrival = a.Time
	}
	late := l.Late
	if l.FirstPlain > 0 && int(a.Number) >= l.FirstPlain {
		late = l.PlainLate
	}
	late.Record(a.Time.Sub(a.Due))
	if !a.Promised.IsZero() {
		l.Promised.Record(a.Time.Sub(a.Promised))
	}
}

// isEarly reports whether a message arrived before its requested or its promised due time. The comparison of two times
// by the server's clock has no margin.
func (l *Ledger) isEarly(a Arrival) bool {
	promised := a.Promised
	if a.Received && !promised.IsZero() {
		promised = promised.Add(-l.clockError)
	}
	return a.Time.Before(a.Due.Add(-l.clockError)) || a.Time.Before(promised)
}

// Arrived returns the number of messages that have arrived, without duplicates and unknown messages.
func (l *Ledger) Arrived() int { return l.arrived }

// Rate returns the average number of arrivals per second from the first to the last arrival, without duplicates.
func (l *Ledger) Rate() float64 {
	if elapsed := l.lastArrival.Sub(l.firstArrival); elapsed > 0 {
		return float64(l.arrived-1) / elapsed.Seconds()
	}
	return 0
}

// Tally returns the counts. Each message that has not arrived counts as lost.
func (l *Ledger) Tally() Tally {
	t := l.tally
	t.Lost = t.Count - l.arrived
	return t
}
