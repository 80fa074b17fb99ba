package journal

import "time"

const (
	// skew is the assumed maximum difference between the clocks of two leaders.
	skew = time.Minute
	// A batch counts as a copy if its latest record was older than maxRecordAge when the batch was stored.
	maxRecordAge = maxBatchAge + skew
	// maxStarts is the maximum number of starts whose last batch a search remembers.
	maxStarts = 1000
)

// Report describes how complete the result of a search is. All times are by the servers' clocks.
type Report struct {
	SearchedAt  time.Time     `json:"-"`                       // time at which the search began
	OldestBatch time.Time     `json:"journal_begins,omitzero"` // when the stream's first message was stored; zero for none
	MaxAge      time.Duration `json:"-"`                       // maximum age of a record; zero without a limit
	Bytes       uint64        `json:"-"`                       // size of the stream

	ReadRecords uint64 `json:"looked"`         // number of records read
	Found       int    `json:"found"`          // number of records selected
	ContinueAt  Place  `json:"go_on,omitzero"` // position of the first selected record beyond Query.Limit; zero for none

	BeginsLater      bool      `json:"begins_later,omitempty"` // the journal begins after the beginning of the query
	Dropped          uint64    `json:"dropped,omitempty"`      // number of dropped records that the batches read report
	DroppedUntil     time.Time `json:"dropped_until,omitzero"` // time of the last of these reports
	UnprovenMessages int       `json:"unproven,omitempty"`     // messages without a valid seal that the search read
	Duplicates       int       `json:"copies,omitempty"`       // number of batches that were copies of earlier batches
}

// Complete reports whether the result has every record that the query selects from Query.From on, as far as the journal
// shows: see the package comment.
func (r Report) Complete() bool {
	return !r.BeginsLater && r.Dropped == 0 && r.ContinueAt.Sequence == 0
}

// starts has the number of the last batch that a search has read of each start.
type starts map[string]uint64

// isCopy reports whether a batch is a copy of an earlier batch, and remembers the batch. A batch of a start is stored
// after all batches with lower numbers.
func (s starts) isCopy(h head, storedAt time.Time) bool {
	if h.Records > 0 && storedAt.Sub(timeOf(h.Last)) > maxRecordAge || h.Number <= s[h.Start] {
		return true
	}
	if len(s) == maxStarts {
		clear(s) // copies of these batches may count once, for maxRecordAge
	}
	s[h.Start] = h.Number
	return false
}
