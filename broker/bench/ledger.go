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
	// Promised is the earliest arrival that the delaying side promised, or zero. A delay begins when the first stream
	// has stored the message, a little after the publish.
	Promised time.Time
	Received bool // by a plain subscriber, so At is by the local clock
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

// Err returns an error if a promise was broken: a message is lost, early or unknown. Copies are allowed.
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

// A Ledger counts the arrivals of accepted messages. It is for one goroutine.
type Ledger struct {
	tally  Tally
	within time.Duration
	seen   []bool
	there  int // number of true values in seen
	first  time.Time
	last   time.Time // first and last arrival
	// Late is the lateness after the requested time, Promised after the promised time. Both exclude duplicates.
	Late, Promised *Lateness
	// Plain is the number of the first plain message. Plain messages are in Beside, and not in Late. Zero means that
	// there are none.
	Plain  int
	Beside *Lateness
}

// NewLedger returns a ledger for messages numbered from zero. Within is the maximum error of the clock that the
// requested times are by. An arrival that is early by less does not count as early.
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

// early reports whether a message arrived too early. If both times are by servers, there is no margin.
func (l *Ledger) early(a Arrival) bool {
	promised := a.Promised
	if a.Received && !promised.IsZero() {
		promised = promised.Add(-l.within)
	}
	return a.At.Before(a.Due.Add(-l.within)) || a.At.Before(promised)
}

// Foreign counts an arrival that is not a message of the run.
func (l *Ledger) Foreign() { l.tally.Unknown++ }

// Arrived returns the number of messages that have arrived, without copies.
func (l *Ledger) Arrived() int { return l.there }

// Rate returns the arrivals per second, from the first to the last.
func (l *Ledger) Rate() float64 {
	if took := l.last.Sub(l.first); took > 0 {
		return float64(l.there-1) / took.Seconds()
	}
	return 0
}

// Tally returns the tally if nothing more arrives.
func (l *Ledger) Tally() Tally {
	t := l.tally
	t.Lost = t.Count - l.there
	return t
}
