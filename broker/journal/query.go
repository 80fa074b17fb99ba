package journal

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"delaybroker/broker/message"
)

// Outcome is how a message ended.
type Outcome string

// The outcomes. Beside them, each code of a dead letter is one.
const (
	Delivered Outcome = "delivered"
	Dead      Outcome = "dead" // a dead letter of any code
)

// Outcomes are all outcomes.
func Outcomes() []Outcome {
	all := []Outcome{Delivered, Dead}
	for _, code := range message.Codes() {
		all = append(all, Outcome(code))
	}
	return all
}

// Outcome is the most exact one of a record: delivered, or the code of a dead letter.
func (r Record) Outcome() Outcome {
	if r.Code == "" {
		return Delivered
	}
	return Outcome(r.Code)
}

// Place is a record's place in the journal.
type Place struct {
	Sequence uint64 // of its batch in the stream; zero for the beginning
	Record   int    // in the batch, from zero
}

// String is what ParsePlace reads.
func (p Place) String() string { return fmt.Sprintf("%d.%d", p.Sequence, p.Record) }

// ParsePlace reads the result of String.
func ParsePlace(s string) (Place, error) {
	sequence, record, ok := strings.Cut(s, ".")
	n, err := strconv.ParseUint(sequence, 10, 63)
	r, err2 := strconv.ParseUint(record, 10, 31)
	if !ok || err != nil || err2 != nil || n == 0 {
		return Place{}, fmt.Errorf("%.40q is no place in the journal: want two numbers, as in 1234.56", s)
	}
	return Place{n, int(r)}, nil
}

// Query chooses records. An empty field chooses all; fields are joined by "and", the values in one by "or".
type Query struct {
	Target   string // a NATS pattern
	Since    time.Time
	Until    time.Time // before then
	IDs      []string  // Delay-Ids, or as much of them as an acknowledgement says: stream and sequence
	Outcomes []Outcome
	LateThan time.Duration // later than this, if it is not zero
	Series   uint64        // of the timer that recurs whose first set has this generation

	From  Place // where an earlier search stopped
	Limit int   // of records found; zero for all
	// Progress, when set, is called for every batch read, with the records so far and about how many there are to read.
	Progress func(looked, of uint64)
}

// matches reports whether a record is chosen.
func (q Query) matches(r Record) bool {
	return (q.Target == "" || message.Match(q.Target, r.Target)) &&
		(q.Since.IsZero() || !r.At.Before(q.Since)) &&
		(q.Until.IsZero() || r.At.Before(q.Until)) &&
		(len(q.IDs) == 0 || slices.ContainsFunc(q.IDs, func(id string) bool { return sameID(id, r.ID) })) &&
		(len(q.Outcomes) == 0 || slices.ContainsFunc(q.Outcomes, r.is)) &&
		(q.LateThan == 0 || r.Late > q.LateThan) && (q.Series == 0 || r.Series == q.Series)
}

func (r Record) is(o Outcome) bool { return o == r.Outcome() || o == Dead && r.Code != "" }

// sameID reports whether an id is the wanted one, which may lack its time.
func sameID(wanted, id string) bool {
	return id == wanted || len(id) > len(wanted) && id[len(wanted)] == '-' && id[:len(wanted)] == wanted &&
		!strings.Contains(id[len(wanted)+1:], "-") && !whole(wanted)
}

// whole reports whether an id has all its parts.
func whole(id string) bool {
	_, err := message.ParseID(id)
	return err == nil
}

// mayHold reports whether a batch may hold a chosen record. It is much quicker than reading the records.
func (q Query) mayHold(h head, lines []byte) bool {
	switch {
	case h.Records == 0,
		!q.Since.IsZero() && at(h.Last).Before(q.Since),
		!q.Until.IsZero() && !at(h.First).Before(q.Until):
		return false
	}
	if len(q.IDs) > 0 && !slices.ContainsFunc(q.IDs, func(id string) bool { return startsWith(lines, "i", id) }) {
		return false
	}
	if q.Series > 0 && !bytes.Contains(lines, fmt.Appendf(nil, `"s":%d,`, q.Series)) {
		return false
	}
	return q.Target == "" || strings.ContainsAny(q.Target, "*>") || startsWith(lines, "t", q.Target)
}
