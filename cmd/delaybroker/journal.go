package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"delaybroker/broker/inspect"
	"delaybroker/broker/journal"
	"delaybroker/broker/text"
	"delaybroker/cmd/delaybroker/terminal"
	"delaybroker/levels"
)

const (
	defaultRecords = 100
	// maxRecords is the maximum number of rows of the table, which is in memory until it is printed.
	maxRecords = 10_000
)

// journalOptions are the flags of journal.
type journalOptions struct {
	journal.Query
	since, until string
}

func (a *app) journalCommand() *cobra.Command {
	var o journalOptions
	c := &cobra.Command{
		Use:   "journal",
		Short: "Search the records of deliveries",
		Long: `Search the records of deliveries, the oldest first. Brokers keep a record of each message that they delivered
or made a dead letter, if DELAY_JOURNAL is set. The lines below the table report the completeness of the answer: the
beginning of the journal, and the intervals with missing records. If no record is found and none is missing, no such
message ended in that period.

at        time of the delivery, by the clock of the NATS server
outcome   delivered, or the code of the dead letter that the message became
late      time from the due time to the delivery; if DELAY_RATE gave the message a later time, from that time
attempts  number of deliveries that the target accepted or refused

exit codes: 0 shown, 1 failed, 2 bad arguments or settings`,
		Example: `  delaybroker journal --target 'orders.>' --since 1h --late-than 1s
  delaybroker journal --since 2026-11-20T10:00:00Z --until 2026-11-20T11:00:00Z --outcome dead --json --limit 0`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := o.query(time.Now(), a.JSON); err != nil { // checks only the flags; times are by the server's clock
				return err
			}
			return a.withInspector(cmd, func(ctx context.Context, i *inspect.Inspector) error { return a.journal(ctx, i, o) })
		},
	}
	f := c.Flags()
	addPatternFlag(f, &o.Target)
	f.StringVar(&o.since, "since", "", "only at this time (RFC 3339) or later, or at most this long ago (2h)")
	f.StringVar(&o.until, "until", "", "only before this time, or longer ago than this")
	f.StringSliceVar(&o.IDs, "id", nil, "only with this Delay-Id, or <stream>-<sequence>; several are comma separated")
	addListFlag(c, &o.Outcomes, "outcome", journal.Outcomes(),
		"delivered, dead, or the code of a dead letter; several are comma separated")
	addFlag(f, &o.Lateness, "late-than",
		"only deliveries later than this, such as 1s", func(text string) (time.Duration, error) {
			d, err := levels.ParseDuration(text)
			if err != nil || d == 0 {
				err = errors.New("want a duration, such as 1s or 250ms")
			}
			return d, err
		})
	addFlag(f, &o.From, "from", "continue where an earlier search stopped: the value that it printed", journal.ParsePlace)
	f.IntVar(&o.Limit, "limit", defaultRecords, "maximum number of records; with --json, 0 for all")
	return c
}

// query checks the flags and converts them to a query. Durations count back from now.
func (o journalOptions) query(now time.Time, asJSON bool) (q journal.Query, err error) {
	q = o.Query
	if q.Since, q.Until, err = parsePeriod(o.since, o.until, now); err != nil {
		return q, err
	}
	for _, id := range q.IDs {
		if _, err := inspect.ParseMessageRef(id); err != nil {
			return q, fmt.Errorf("%w: --id: %w", errUsage, err)
		}
	}
	if q.Limit < 0 || !asJSON && (q.Limit == 0 || q.Limit > maxRecords) {
		return q, fmt.Errorf("%w: --limit %d: want 1 to %d; with --json any number, and 0 for all",
			errUsage, q.Limit, maxRecords)
	}
	return q, nil
}

func (a *app) journal(ctx context.Context, i *inspect.Inspector, o journalOptions) error {
	now, err := i.JournalTime(ctx)
	if err != nil {
		return err
	}
	q, err := o.query(now, a.JSON)
	if err != nil {
		return err
	}
	tracker := progress{app: a, rows: true}
	q.Progress = tracker.update
	t := a.Sheet([]terminal.Column{
		{Name: "at", Min: 20}, {Name: "target", Min: 10}, {Name: "outcome", Min: 9},
		{Name: "late"}, {Name: "attempts", Drop: 2}, {Name: "delay-id", Drop: 3},
		{Name: "reason", Drop: 1, Min: 12, Wrap: true},
	})
	j, err := i.Journal(ctx, q, func(e journal.Entry) error {
		if a.AsJSON(newRecordView(e)) {
			return a.Failure()
		}
		target, reason := text.Printable(e.Target, 256), text.Printable(e.Reason, 600)
		t.Add(formatMillisecond(e.At), terminal.OrDash(target), text.Printable(string(e.Outcome()), 64),
			formatLateness(e.Due, e.Lateness), e.Attempts(), text.Printable(e.ID, 256), terminal.OrDash(reason))
		return nil
	})
	if err != nil {
		return err
	}
	if a.AsJSON(newCompletenessView(j)) {
		return nil
	}
	if j.Found > 0 {
		t.Print()
	}
	a.printCompleteness(j, o)
	return nil
}

// formatLateness formats the lateness of a delivery. It returns a dash without a due time.
func formatLateness(due time.Time, late time.Duration) string {
	switch {
	case due.IsZero():
		return "-"
	case late < 10*time.Millisecond:
		return fmt.Sprintf("%.1fms", float64(late)/float64(time.Millisecond))
	}
	return text.Span(late)
}

// formatMillisecond formats a time for a list: to the millisecond, with its zone.
func formatMillisecond(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

type recordView struct {
	At       time.Time `json:"at"`
	ID       string    `json:"id"`
	Target   string    `json:"target,omitempty"`
	Outcome  string    `json:"outcome"`
	Due      time.Time `json:"due,omitzero"`
	Late     float64   `json:"late_seconds"`
	Attempts int       `json:"attempts"`
	Reason   string    `json:"reason,omitempty"`
	Instance string    `json:"instance"`
}

func newRecordView(e journal.Entry) recordView {
	return recordView{
		At: e.At, ID: e.ID, Target: e.Target, Outcome: string(e.Outcome()), Due: e.Due, Late: e.Lateness.Seconds(),
		Attempts: e.Attempts(), Reason: e.Reason, Instance: e.Instance,
	}
}

// completenessView is the last line of JSON. It describes the completeness of the answer.
type completenessView struct {
	Complete       bool      `json:"complete"` // no record is missing for the requested period
	Begins         time.Time `json:"journal_begins,omitzero"`
	MaxAge         float64   `json:"kept_seconds"`
	Read           uint64    `json:"looked"`
	Found          int       `json:"found"`
	ContinueAt     string    `json:"go_on,omitempty"` // for --from, if --limit ended the answer
	Holes          []gapView `json:"holes"`
	MoreHoles      int       `json:"more_holes,omitempty"`
	WithoutJournal []string  `json:"instances_without,omitempty"`
	Unproven       int       `json:"unproven,omitempty"`
	Copies         int       `json:"copies,omitempty"`
}

type gapView struct {
	Instance string    `json:"instance,omitempty"`
	From     time.Time `json:"from"`
	To       time.Time `json:"to"`
	Records  int       `json:"records,omitempty"`
	Reason   string    `json:"why"`
}

func newCompletenessView(j inspect.JournalReport) completenessView {
	v := completenessView{
		Complete: j.Complete(), Begins: j.OldestBatch, MaxAge: j.MaxAge.Seconds(), Read: j.ReadRecords, Found: j.Found,
		Holes: []gapView{}, MoreHoles: j.MoreHoles, WithoutJournal: j.WithoutJournal, Unproven: j.UnprovenMessages,
		Copies: j.Duplicates,
	}
	if j.ContinueAt.Sequence > 0 {
		v.ContinueAt = j.ContinueAt.String()
	}
	for _, h := range j.Holes {
		v.Holes = append(v.Holes, gapView(h))
	}
	return v
}

func (a *app) printCompleteness(j inspect.JournalReport, o journalOptions) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s of %d searched", terminal.Counted(j.Found, "record"), j.ReadRecords)
	if !j.OldestBatch.IsZero() {
		fmt.Fprintf(&b, "; the journal is kept for %s and begins at %s",
			levels.FormatDuration(j.MaxAge), formatMillisecond(j.OldestBatch))
	}
	b.WriteString("\n")
	if j.ContinueAt.Sequence > 0 {
		fmt.Fprintf(&b, "stopped at --limit %d: continue with --from %s\n", o.Limit, j.ContinueAt)
	}
	for _, h := range j.Holes {
		records := "records"
		if h.Records > 0 {
			records = terminal.Counted(h.Records, "record")
		}
		if h.Instance != "" {
			records += " of " + text.Printable(h.Instance, 64)
		}
		fmt.Fprintf(&b, "MISSING: %s, from %s to %s: %s\n",
			records, formatMillisecond(h.From), formatMillisecond(h.To), h.Reason)
	}
	if j.MoreHoles > 0 {
		fmt.Fprintf(&b, "MISSING: records of %s\n", terminal.Counted(j.MoreHoles, "further interval"))
	}
	if len(j.WithoutJournal) > 0 {
		fmt.Fprintf(&b, "MISSING: deliveries of instances without a journal: %s\n",
			text.Printable(strings.Join(j.WithoutJournal, ", "), 600))
	}
	if j.UnprovenMessages > 0 {
		fmt.Fprintf(&b, "%s in the journal's stream ignored: no valid seal\n",
			terminal.Counted(j.UnprovenMessages, "message"))
	}
	if j.Complete() {
		b.WriteString("complete: no record of that interval is missing\n")
	}
	fmt.Fprint(a.Err, b.String())
}
