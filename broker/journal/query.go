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

// Outcome is the end of a message.
type Outcome string

// The outcomes. Each code of a dead letter is an outcome, too.
const (
	delivered Outcome = "delivered"
	Dead      Outcome = "dead" // a dead letter of any code
)

// Outcomes returns all outcomes.
func Outcomes() []Outcome {
	outcomes := []Outcome{delivered, Dead}
	for _, code := range message.Codes() {
		outcomes = append(outcomes, Outcome(code))
	}
	return outcomes
}

// Outcome returns the outcome of a record: delivered, or the code of its dead letter.
func (r Record) Outcome() Outcome {
	if r.Code == "" {
		return delivered
	}
	return Outcome(r.Code)
}

// Place is a record's position in the journal.
type Place struct {
	Sequence uint64 // sequence of the record's batch in the stream; zero means the beginning of the journal
	Record   int    // index of the record in its batch, from zero
}

// String returns the text that ParsePlace parses.
func (p Place) String() string { return fmt.Sprintf("%d.%d", p.Sequence, p.Record) }

// MarshalText returns the text that ParsePlace parses.
func (p Place) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// ParsePlace parses the result of String. It returns an error for the zero Place.
func ParsePlace(s string) (Place, error) {
	sequence, record, ok := strings.Cut(s, ".")
	n, err := strconv.ParseUint(sequence, 10, 63)
	r, err2 := strconv.ParseUint(record, 10, 31)
	if !ok || err != nil || err2 != nil || n == 0 {
		return Place{}, fmt.Errorf("%.40q is not a place in the journal: want two numbers, such as 1234.56", s)
	}
	return Place{n, int(r)}, nil
}

// Query selects records. A record is selected if it matches every field of the first group. A record matches a list if
// it matches one value of the list. An empty field matches all records.
type Query struct {
	Target   string    // a NATS pattern
	Since    time.Time // the earliest Record.At
	Until    time.Time // Record.At must be earlier
	IDs      []string  // Delay-Ids, or their first part: stream and sequence
	Outcomes []Outcome
	Lateness time.Duration // lateness that a record must exceed; zero selects all records
	Series   uint64        // generation of the first set of a recurring timer

	From  Place // position at which the search begins, such as Report.ContinueAt; the zero Place is the beginning
	Limit int   // maximum number of records; zero for all
	// Progress, if not nil, is called before each batch, with the number of records read so far and an estimate of the
	// total.
	Progress func(read, total uint64)
}

// matches reports whether the query selects a record.
func (q Query) matches(r Record) bool {
	return (q.Target == "" || message.Match(q.Target, r.Target)) &&
		(q.Since.IsZero() || !r.At.Before(q.Since)) &&
		(q.Until.IsZero() || r.At.Before(q.Until)) &&
		(len(q.IDs) == 0 || slices.ContainsFunc(q.IDs, func(id string) bool { return sameID(id, r.ID) })) &&
		(len(q.Outcomes) == 0 || slices.ContainsFunc(q.Outcomes, r.hasOutcome)) &&
		(q.Lateness == 0 || r.Lateness > q.Lateness) && (q.Series == 0 || r.Series == q.Series)
}

func (r Record) hasOutcome(o Outcome) bool { return o == r.Outcome() || o == Dead && r.Code != "" }

// sameID reports whether an id is equal to the wanted id. A wanted id without a time matches any time.
func sameID(wanted, id string) bool {
	if id == wanted {
		return true
	}
	nanoseconds, ok := strings.CutPrefix(id, wanted+"-")
	if !ok || strings.Contains(nanoseconds, "-") {
		return false
	}
	_, err := message.ParseID(wanted)
	return err != nil // an error means that wanted is only the first part of an id
}

// mayContain reports whether a batch may contain a selected record. It does not parse the records, so it is much faster
// than matches.
func (q Query) mayContain(h head, lines []byte) bool {
	switch {
	case h.Records == 0,
		!q.Since.IsZero() && timeOf(h.Last).Before(q.Since),
		!q.Until.IsZero() && !timeOf(h.First).Before(q.Until):
		return false
	}
	if len(q.IDs) > 0 && !slices.ContainsFunc(q.IDs, func(id string) bool { return hasPrefix(lines, "i", id) }) {
		return false
	}
	if q.Series > 0 && !bytes.Contains(lines, fmt.Appendf(nil, `"s":%d,`, q.Series)) {
		return false
	}
	return q.Target == "" || strings.ContainsAny(q.Target, "*>") || hasPrefix(lines, "t", q.Target)
}
