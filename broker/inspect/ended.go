package inspect

import (
	"context"
	"errors"
	"fmt"
	"time"

	"delaybroker/broker/journal"
	"delaybroker/broker/text"
)

// journalRecords has the result of a search for one message in the journal.
type journalRecords struct {
	hasJournal bool          // the stream of the journal exists
	lastEntry  journal.Entry // the last delivery; without a delivery, the last dead letter
	delivered  int           // number of deliveries
	report     JournalReport
}

// findRecords searches the journal for the message's records. If the journal has a delivery of the message, findRecords
// ignores the records of dead letters: while a lane has two owners, one may deliver the message, and the other make it
// a dead letter.
func (s *search) findRecords(ctx context.Context, w journalWriters) (journalRecords, error) {
	records := journalRecords{hasJournal: true}
	var since, earliest time.Time
	if !s.Partial {
		since = s.ID.At
		earliest = since.Add(-leaderSkew)
	}
	q := journal.Query{IDs: []string{s.name()}, Since: earliest, Progress: s.progress}
	var err error
	records.report, err = s.searchJournal(ctx, q, w, func(found journal.Entry) error {
		if found.Code == "" {
			records.delivered++
		}
		if found.Code == "" || records.delivered == 0 {
			records.lastEntry = found
			s.match(found.ID) // a partial reference becomes complete, because found.ID has the time of acceptance
		}
		return nil
	})
	if errors.Is(err, journal.ErrNoJournal) {
		return journalRecords{}, nil
	}
	// A journal that begins within leaderSkew before the message has its record.
	records.report.BeginsLater = records.report.BeginsLater &&
		(records.report.OldestBatch.IsZero() || records.report.OldestBatch.After(since))
	return records, err
}

// describeRecord describes a message from its journal records: a delivery, or a dead letter that was removed or resent.
func (s *search) describeRecord(records journalRecords) Whereabouts {
	r := records.lastEntry
	w := Whereabouts{
		ID: r.ID, Found: true, Searched: s.searched, Accepted: s.ID.At, Due: r.Due, Target: r.Target,
		Attempts: r.Refusals, LastError: r.Reason, Instance: r.Instance,
	}
	if r.Code != "" {
		w.Code, w.Reason, w.LastError = string(r.Code), r.Reason, ""
		w.Answer = fmt.Sprintf("became a dead letter at %s; the dead letter was removed or resent", text.Moment(r.At))
		return w
	}
	w.Delivered, w.Late = r.At, r.Lateness.Seconds()
	w.Answer = fmt.Sprintf("delivered at %s, %s, on attempt %d", text.Moment(r.At), latenessText(r.Lateness),
		r.Attempts())
	if records.delivered > 1 {
		w.Answer += fmt.Sprintf(", %d times in all", records.delivered)
	}
	return w
}

func latenessText(d time.Duration) string {
	if d <= 0 {
		return "on time"
	}
	return text.Span(d) + " late"
}

// absence explains the missing record of a message that was found nowhere else.
func (records journalRecords) absence() string {
	const exception = "it was purged, or the id is invented"
	if !records.hasJournal {
		return "delivered, unless " + exception
	}
	reason, r := "", records.report
	switch {
	case len(r.WithoutJournal) > 0:
		reason = "not every instance keeps a journal"
	case r.BeginsLater:
		reason = "it begins after the message"
	case r.Dropped+r.Unstored > 0:
		reason = fmt.Sprintf("%d records are missing", r.Dropped+r.Unstored)
	default:
		return "the journal has no delivery of the message: it was delivered in the last second of a broker that was " +
			"killed, " + exception
	}
	return fmt.Sprintf("delivered, unless %s; the journal is incomplete: %s", exception, reason)
}
