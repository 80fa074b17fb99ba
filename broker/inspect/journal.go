package inspect

import (
	"context"
	"time"

	"delaybroker/broker/journal"
	"delaybroker/broker/stats"
)

// JournalReport describes the holes in the result of a search in the journal.
type JournalReport struct {
	journal.Report
	// WithoutJournal has the names of the running instances that keep no journal. It is nil if the interval of the query
	// ended before the search.
	WithoutJournal []string
}

// Complete reports whether the result has all records that the query selects, and WithoutJournal is empty.
func (j JournalReport) Complete() bool { return j.Report.Complete() && len(j.WithoutJournal) == 0 }

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
	if j.Report, err = i.journal(w.states).Search(ctx, q, found); err != nil {
		return j, err
	}
	searchesAfter := func(t time.Time) bool { return q.Until.IsZero() || q.Until.After(t) }
	if searchesAfter(j.SearchedAt) {
		j.WithoutJournal = w.withoutJournal
	}
	if doubtful := j.SearchedAt.Add(-journal.DoubtAfter); w.states == nil && searchesAfter(doubtful) {
		j.Holes = append(j.Holes, journal.Hole{From: doubtful, To: j.SearchedAt,
			Reason: "unknown: the running instances did not answer"})
	}
	return j, nil
}

// JournalTime returns the time by the clock of the leader of the journal's stream.
func (i *Inspector) JournalTime(ctx context.Context) (time.Time, error) {
	ctx, cancel := i.WithRefusal(ctx)
	defer cancel()
	now, err := i.journal(nil).Now(ctx)
	return now, Cause(ctx, err)
}

// journal opens the journal. Call ReadKeys before a search.
func (i *Inspector) journal(states []journal.State) *journal.Journal {
	return journal.Open(journal.Config{
		Conn: i.Conn, JetStream: i.JetStream, APIPrefix: i.api.API, Policy: i.streams.Policy(), States: states,
	})
}

// journalWriters has the answers of the running instances about their journals.
type journalWriters struct {
	states         []journal.State // states of the instances with a journal; nil if the running instances are unknown
	withoutJournal []string
}

// askWriters requests the state of the journals before a search. Only a sealed answer proves that an instance runs. If
// no sealed answer arrives, the running instances are unknown, unless the request has no subscriber: then none runs.
func (i *Inspector) askWriters(ctx context.Context) journalWriters {
	ctx, cancel := i.WithRefusal(ctx)
	defer cancel()
	var n Instances
	states := []journal.State{}
	proven := false
	noSubscriber, err := i.askAll(ctx, nil, func(m Member) (more bool) {
		n.Answers = append(n.Answers, m.Answer)
		proven = proven || m.Proven
		if m.Proven && m.Journal {
			state := journal.State{}
			if m.Writer != nil {
				state = *m.Writer
			}
			state.Instance = m.Instance
			states = append(states, state)
		}
		return true
	})
	w := journalWriters{withoutJournal: n.WithoutJournal()}
	if err == nil && (proven || len(n.Answers) == 0 && noSubscriber) {
		w.states = states
	}
	return w
}

// WithoutJournal returns the instances that keep no journal.
func (n Instances) WithoutJournal() []string {
	return n.Names(func(a stats.Answer) bool { return !a.Journal })
}
