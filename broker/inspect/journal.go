package inspect

import (
	"context"
	"time"

	"delaybroker/broker/figures"
	"delaybroker/broker/journal"
)

// Journaled is what an answer of the journal is worth.
type Journaled struct {
	journal.Report
	// Without are the instances that run and keep no journal: what they deliver is missing.
	Without []string
}

// Complete reports whether a message that is not in the answer did not end in the time asked for.
func (j Journaled) Complete() bool { return j.Report.Complete() && len(j.Without) == 0 }

// Journal searches the records of deliveries, and calls found for each, the oldest first. Where nobody keeps any, it
// returns a journal.ErrNone.
func (i *Inspector) Journal(
	ctx context.Context, q journal.Query, found func(journal.Entry) error,
) (Journaled, error) {
	allowed, cancel := i.Allowed(ctx)
	defer cancel()
	var j Journaled
	err := i.streams.ReadKeys(allowed, i.JetStream)
	if err == nil {
		j.Report, err = i.journal().Search(allowed, q, found)
	}
	if err != nil {
		return j, Cause(allowed, err)
	}
	if q.Until.IsZero() || q.Until.After(j.Asked) {
		j.Without = i.withoutJournal(ctx)
	}
	return j, nil
}

// JournalTime is the time by the clock of the server that keeps the journal.
func (i *Inspector) JournalTime(ctx context.Context) (time.Time, error) {
	allowed, cancel := i.Allowed(ctx)
	defer cancel()
	now, err := i.journal().Now(allowed)
	return now, Cause(allowed, err)
}

// journal opens the journal. The keys must have been read.
func (i *Inspector) journal() *journal.Journal {
	return journal.Open(journal.Config{
		Conn: i.Conn, JetStream: i.JetStream, APIPrefix: i.api.API, Policy: i.streams.Policy(),
	})
}

// withoutJournal asks the instances that run. One that may not be asked says nothing.
func (i *Inspector) withoutJournal(ctx context.Context) []string {
	asking, cancel := i.Allowed(ctx)
	defer cancel()
	n, err := i.askOnce(asking, nil, true)
	if err != nil {
		return nil
	}
	return n.withoutJournal()
}

func (n instances) withoutJournal() []string {
	return n.names(func(a figures.Answer) bool { return !a.Journal })
}
