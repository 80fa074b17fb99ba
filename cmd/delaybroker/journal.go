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
	"delaybroker/broker/ratelog"
	"delaybroker/broker/text"
	"delaybroker/cmd/delaybroker/terminal"
	"delaybroker/levels"
)

const (
	defaultRecords = 100
	// maxRecords bounds a table, which is in memory until it is printed. A stream of JSON has no bound.
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
		Short: "Search what was delivered, and when",
		Long: `Search the records of deliveries, the oldest first, where brokers keep them (DELAY_JOURNAL). What is said below
the table is what the answer is worth: since when there is a journal, and of which times records are missing. Nothing
found and nothing missing means that nothing was delivered.

at        when the target had it, by the clock of the NATS server
outcome   delivered, or the code of the dead letter that the message became
late      since the message was due or, at a target with a rate, since its turn
attempts  deliveries that the target answered

exit codes: 0 shown, 1 failed, 2 bad arguments or settings`,
		Example: `  delaybroker journal --target 'orders.>' --since 1h --late-than 1s
  delaybroker journal --since 2026-11-20T10:00:00Z --until 2026-11-20T11:00:00Z --outcome dead --json --limit 0`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := o.query(time.Now(), a.JSON); err != nil { // only the syntax: the query itself is by the server's clock
				return err
			}
			return a.inspect(cmd, func(ctx context.Context, i *inspect.Inspector) error { return a.journal(ctx, i, o) })
		},
	}
	f := c.Flags()
	patternFlag(f, &o.Target, "target", "to this target; wildcards as in 'orders.>'")
	f.StringVar(&o.since, "since", "", "since then: a time (RFC 3339), or a duration ago (2h)")
	f.StringVar(&o.until, "until", "", "before then, likewise")
	f.StringSliceVar(&o.IDs, "id", nil, "with this Delay-Id, or one of several; <stream>-<sequence> will do")
	wordsFlag(c, &o.Outcomes, "outcome", journal.Outcomes(),
		"delivered, dead, or the code of a dead letter; or one of several")
	valueFlag(f, &o.LateThan, "late-than", "later than this, as in 1s", func(text string) (time.Duration, error) {
		d, err := levels.ParseDuration(text)
		if err != nil || d == 0 {
			err = errors.New("want a duration, such as 1s or 250ms")
		}
		return d, err
	})
	valueFlag(f, &o.From, "from", "go on where an earlier search stopped", journal.ParsePlace)
	f.IntVar(&o.Limit, "limit", defaultRecords, "stop after so many; 0 for all, with --json")
	return c
}

// query returns the query of the flags. Durations count back from now.
func (o journalOptions) query(now time.Time, asJSON bool) (q journal.Query, err error) {
	q = o.Query
	if q.Since, q.Until, err = period(o.since, o.until, now); err != nil {
		return q, err
	}
	for _, id := range q.IDs {
		if _, err := inspect.ParseWanted(id); err != nil {
			return q, fmt.Errorf("%w: --id: %w", errUsage, err)
		}
	}
	if most := maxRecords; q.Limit < 0 || !asJSON && (q.Limit == 0 || q.Limit > most) {
		return q, fmt.Errorf("%w: --limit %d: want 1 to %d; with --json any number, and 0 for all", errUsage, q.Limit, most)
	}
	return q, nil
}

func (a *app) journal(ctx context.Context, i *inspect.Inspector, o journalOptions) error {
	asked, err := i.JournalTime(ctx)
	if err != nil {
		return err
	}
	q, err := o.query(asked, a.JSON)
	if err != nil {
		return err
	}
	var told ratelog.Limit
	told.Allow(inspect.ProgressInterval) // a short search shows no progress
	q.Progress = func(looked, of uint64) {
		if _, ok := told.Allow(inspect.ProgressInterval); ok && terminal.Is(a.Err) {
			fmt.Fprintf(a.Err, "searched %d of about %d records\n", looked, of)
		}
	}
	t := a.Sheet([]terminal.Column{
		{Name: "at", Min: 20}, {Name: "target", Min: 10}, {Name: "outcome", Min: 9},
		{Name: "late"}, {Name: "attempts", Drop: 2}, {Name: "delay-id", Drop: 3},
		{Name: "reason", Drop: 1, Min: 12, Wrap: true},
	})
	j, err := i.Journal(ctx, q, func(e journal.Entry) error {
		if a.AsJSON(viewOfEntry(e)) {
			return a.Failure()
		}
		target, reason := text.Printable(e.Target, 256), text.Printable(e.Reason, 600)
		t.Add(millisecond(e.At), terminal.OrDash(target), text.Printable(string(e.Outcome()), 64), lateCell(e.Record),
			e.Attempts(), text.Printable(e.ID, 256), terminal.OrDash(reason))
		return nil
	})
	if err != nil {
		return err
	}
	if a.AsJSON(worthOf(j)) {
		return nil
	}
	if j.Found > 0 {
		t.Print()
	}
	a.sayJournal(j, o)
	return nil
}

// lateCell formats the lateness of a record: in milliseconds, or in microseconds if it is shorter.
func lateCell(r journal.Record) string {
	if r.Due.IsZero() {
		return "-"
	}
	return lateness(r.Late)
}

func lateness(d time.Duration) string {
	if d < 10*time.Millisecond {
		return fmt.Sprintf("%.1fms", float64(d)/float64(time.Millisecond))
	}
	return text.Span(d)
}

// millisecond formats a time for a list: to the millisecond, with its zone.
func millisecond(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

// recordView is a record as JSON.
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

func viewOfEntry(e journal.Entry) recordView {
	return recordView{
		At: e.At, ID: e.ID, Target: e.Target, Outcome: string(e.Outcome()), Due: e.Due, Late: e.Late.Seconds(),
		Attempts: e.Attempts(), Reason: e.Reason, Instance: e.Instance,
	}
}

// worthView is the last line of JSON: the completeness of the answer.
type worthView struct {
	Complete bool       `json:"complete"` // no record is missing for the requested time
	Begins   time.Time  `json:"journal_begins,omitzero"`
	Kept     float64    `json:"kept_seconds"`
	Looked   uint64     `json:"looked"`
	Found    int        `json:"found"`
	GoOn     string     `json:"go_on,omitempty"` // for --from, if --limit ended the answer
	Holes    []holeView `json:"holes"`
	More     int        `json:"more_holes,omitempty"`
	Without  []string   `json:"instances_without,omitempty"`
	Unproven int        `json:"unproven,omitempty"`
	Copies   int        `json:"copies,omitempty"`
}

type holeView struct {
	Instance string    `json:"instance,omitempty"`
	From     time.Time `json:"from"`
	To       time.Time `json:"to"`
	Records  int       `json:"records,omitempty"`
	Why      string    `json:"why"`
}

func worthOf(j inspect.Journaled) worthView {
	v := worthView{
		Complete: j.Complete(), Begins: j.Begins, Kept: j.Kept.Seconds(), Looked: j.Looked, Found: j.Found,
		Holes: []holeView{}, More: j.More, Without: j.Without, Unproven: j.Unproven, Copies: j.Copies,
	}
	if j.GoOn.Sequence > 0 {
		v.GoOn = j.GoOn.String()
	}
	for _, h := range j.Holes {
		v.Holes = append(v.Holes, holeView(h))
	}
	return v
}

// sayJournal prints the completeness of the answer.
func (a *app) sayJournal(j inspect.Journaled, o journalOptions) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s of %d looked at", terminal.Counted(j.Found, "record"), j.Looked)
	if !j.Begins.IsZero() {
		fmt.Fprintf(&b, "; the journal is kept for %s and begins at %s",
			levels.FormatDuration(j.Kept), millisecond(j.Begins))
	}
	b.WriteString("\n")
	if j.GoOn.Sequence > 0 {
		fmt.Fprintf(&b, "stopped at --limit %d: go on with --from %s\n", o.Limit, j.GoOn)
	}
	for _, h := range j.Holes {
		who := "records"
		if h.Records > 0 {
			who = terminal.Counted(h.Records, "record")
		}
		if h.Instance != "" {
			who += " of " + text.Printable(h.Instance, 64)
		}
		fmt.Fprintf(&b, "MISSING: %s, from %s to %s: %s\n", who, millisecond(h.From), millisecond(h.To), h.Why)
	}
	if j.More > 0 {
		fmt.Fprintf(&b, "MISSING: %s more\n", terminal.Counted(j.More, "time"))
	}
	if len(j.Without) > 0 {
		fmt.Fprintf(&b, "MISSING: what these instances deliver, which keep no journal: %s\n",
			text.Printable(strings.Join(j.Without, ", "), 600))
	}
	if j.Unproven > 0 {
		fmt.Fprintf(&b, "%s in the journal's stream not believed: no broker's seal\n",
			terminal.Counted(j.Unproven, "message"))
	}
	if j.Complete() {
		b.WriteString("complete: no record of that time is missing\n")
	}
	fmt.Fprint(a.Err, b.String())
}
