package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"delaybroker/broker/journal"
	"delaybroker/broker/text"
)

// maxFlush is the maximum time from the end of a message until the instance has stored its record in the journal, with
// a margin.
const maxFlush = 300 * time.Millisecond

// journalRecords has the result of a search for one message in the journal.
type journalRecords struct {
	hasJournal bool          // an instance keeps a journal
	last       journal.Entry // the last delivery; without a delivery, the last dead letter
	delivered  int           // number of deliveries
	report     JournalReport
}

// findRecords searches the journal for the message's records. If the journal has a delivery of the message, findRecords
// ignores the records of dead letters: an instance may deliver a duplicate after another owner of the lane has made the
// message a dead letter.
func (s *search) findRecords(ctx context.Context, w journalWriters) (journalRecords, error) {
	e := journalRecords{hasJournal: true}
	var since, from time.Time
	if !s.Partial {
		since = s.ID.At
		from = since.Add(-leaderSkew)
	}
	q := journal.Query{IDs: []string{s.name()}, Since: from, Progress: func(read, total uint64) {
		if _, ok := s.progressed.Allow(ProgressInterval); ok {
			s.progress(read, total)
		}
	}}
	var err error
	e.report, err = s.searchJournal(ctx, q, w, func(found journal.Entry) error {
		if found.Code == "" {
			e.delivered++
		}
		if found.Code == "" || e.delivered == 0 {
			e.last = found
			s.matches(found.ID) // completes a partial reference
		}
		return nil
	})
	if errors.Is(err, journal.ErrNoJournal) {
		return journalRecords{}, nil
	}
	e.report.Holes = slices.DeleteFunc(e.report.Holes, func(h journal.Hole) bool { return !h.To.After(since) })
	return e, err
}

// describeRecord describes a message by the journal: it was delivered, or it became a dead letter that is gone.
func (s *search) describeRecord(e journalRecords) Whereabouts {
	r := e.last
	w := Whereabouts{
		ID: r.ID, Found: true, Searched: s.searched, Accepted: s.ID.At, Due: r.Due, Target: r.Target,
		Retries: Retries{Attempts: r.Refused, LastError: r.Reason}, Delivery: Delivery{Instance: r.Instance},
	}
	if r.Code != "" {
		w.Code, w.Reason, w.LastError = string(r.Code), r.Reason, ""
		w.Answer = fmt.Sprintf("became a dead letter at %s; the dead letter was removed or resent", text.Moment(r.At))
		return w
	}
	w.Delivered, w.Late = r.At, r.Late.Seconds()
	w.Answer = fmt.Sprintf("delivered at %s, %s, on attempt %d", text.Moment(r.At), latenessText(r.Late), r.Attempts())
	if e.delivered > 1 {
		w.Answer += fmt.Sprintf(", %d times in all", e.delivered)
	}
	return w
}

// latenessText returns a lateness as text.
func latenessText(d time.Duration) string {
	if d <= 0 {
		return "on time"
	}
	return text.Span(d) + " late"
}

// unrecorded returns the possible reasons why the journal has no record of a message that was found nowhere else.
func (e journalRecords) unrecorded() string {
	const gone = "it was purged, or the id is invented"
	switch {
	case !e.hasJournal:
		return "delivered, unless " + gone
	case e.report.Complete():
		return "the journal is complete and has no delivery of it: " + gone
	}
	why := "not every instance keeps a journal"
	if len(e.report.Holes) > 0 {
		why = e.report.Holes[0].Why
	}
	return fmt.Sprintf("delivered, unless %s; the journal is incomplete (%s)", gone, why)
}
