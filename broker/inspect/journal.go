package inspect

import (
	"context"
	"time"

	"delaybroker/broker/journal"
	"delaybroker/broker/stats"
)

// JournalReport describes what is missing in the result of a search in the journal.
type JournalReport struct {
	journal.Report
	journalWriters // zero if the interval of the query ended before the search
}

// journalWriters has the answers of the running instances about their journals.
type journalWriters struct {
	// Unstored is the number of records that the running instances have not stored in time, or have dropped without a
	// report in the journal.
	Unstored uint64 `json:"unstored,omitempty"`
	// WithoutJournal has the names of the running instances that keep no journal.
	WithoutJournal []string `json:"instances_without,omitempty"`
}

// Complete reports whether the result has all records that the query selects, as far as the journal and the answers of
// the running instances show.
func (j JournalReport) Complete() bool {
	return j.Report.Complete() && j.Unstored == 0 && len(j.WithoutJournal) == 0
}

// Journal searches the records of deliveries and dead letters. It calls found for each matching record, in the order in
// which the records were stored. If the stream of the journal does not exist, Journal returns journal.ErrNoJournal.
func (i *Inspector) Journal(
	ctx context.Context, q journal.Query, found func(journal.Entry) error,
) (JournalReport, error) {
	searchCtx, cancel := i.WithRefusal(ctx)
	defer cancel()
	if err := i.streams.ReadKeys(searchCtx, i.JetStream); err != nil {
		return JournalReport{}, Cause(searchCtx, err)
	}
	j, err := i.searchJournal(searchCtx, q, i.askWriters(ctx), found)
	return j, Cause(searchCtx, err)
}

// searchJournal searches like Journal, with secrets and instances that the caller has already requested.
func (i *Inspector) searchJournal(
	ctx context.Context, q journal.Query, w journalWriters, found func(journal.Entry) error,
) (j JournalReport, err error) {
	if j.Report, err = i.journal().Search(ctx, q, found); err != nil {
		return j, err
	}
	if q.Until.IsZero() || q.Until.After(j.SearchedAt) {
		j.journalWriters = w
	}
	return j, nil
}

// JournalTime returns the time by the clock of the leader of the journal's stream.
func (i *Inspector) JournalTime(ctx context.Context) (time.Time, error) {
	ctx, cancel := i.WithRefusal(ctx)
	defer cancel()
	now, err := i.journal().Now(ctx)
	return now, Cause(ctx, err)
}

// journal opens the journal. Call ReadKeys before a search.
func (i *Inspector) journal() journal.Journal {
	return journal.Journal{Scan: i.scan(), Policy: i.streams.Policy()}
}

// askWriters requests the state of the journals before a search. Without an answer, the journal alone counts.
func (i *Inspector) askWriters(ctx context.Context) (w journalWriters) {
	ctx, cancel := i.WithRefusal(ctx)
	defer cancel()
	n, _ := i.askOnce(ctx, nil, true) // after an error, the answers so far count
	for _, a := range n.ProvenAnswers {
		w.Unstored += a.MissingRecords
	}
	w.WithoutJournal = n.WithoutJournal()
	return w
}

// WithoutJournal returns the instances that keep no journal.
func (n Instances) WithoutJournal() []string {
	return n.Names(func(a stats.InstanceStatus) bool { return !a.Journal })
}
