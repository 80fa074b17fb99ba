package operation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"

	"delaybroker/broker/inspect"
	"delaybroker/broker/journal"
	"delaybroker/broker/text"
	"delaybroker/levels"
)

var journalOperation = Operation{
	Name: "journal", Noun: "record", New: searchJournal,
	Short: "Search the records of deliveries",
	Long: `Search the records of deliveries, the oldest first. Brokers keep a record of each message that they delivered
or made a dead letter, if DELAY_JOURNAL is set. The lines below the table report the completeness of the answer: the
beginning of the journal, and the number of missing records. A broker that was killed leaves no record of its last
deliveries, up to a second of them.

at        time of the delivery, by the clock of the NATS server
outcome   delivered, or the code of the dead letter that the message became
late      time from the due time to the delivery; if DELAY_RATE gave the message a later time, from that time
attempts  number of deliveries that the target accepted or refused

exit codes: 0 shown, 1 failed, 2 bad arguments or settings`,
	Example: `  delaybroker journal --target 'orders.>' --since 1h --late-than 1s
  delaybroker journal --since 2026-11-20T10:00:00Z --until 2026-11-20T11:00:00Z --outcome dead --json --limit 0`,
	Columns: slices.Concat([]Column{{Name: "at", Field: "at", Kind: Instant, Min: 20},
		{Name: "target", Field: "target", Kind: Target, Min: 10}}, endColumns),
}

// endColumns are the columns about the end of a message.
var endColumns = []Column{
	{Name: "outcome", Field: "outcome", Kind: Code, Min: 9}, {Name: "late", Field: "late_seconds", Kind: Lateness},
	{Name: "attempts", Field: "attempts", Kind: Number, Drop: 2}, {Name: "delay-id", Field: "id", Kind: ID, Drop: 3},
	{Name: "reason", Field: "reason", Drop: 1, Min: 12, Wrap: true},
}

// RunColumns are the columns of the latest runs of a schedule.
var RunColumns = slices.Concat([]Column{{Name: "round", Field: "round", Kind: Number},
	{Name: "due", Field: "due", Kind: Time, Min: 20}}, endColumns)

// journalEnd is the last line of JSON.
type journalEnd struct {
	Complete bool    `json:"complete"` // no record is missing for the requested period
	Kept     float64 `json:"kept_seconds"`
	inspect.JournalReport
}

func searchJournal(b Bounds) *Use {
	var q journal.Query
	var p period
	id := List(&q.IDs, "id", "only with this Delay-Id, or <stream>-<sequence>", func(text string) (string, error) {
		_, err := inspect.ParseMessageRef(text)
		return text, err
	})
	outcome := List(&q.Outcomes, "outcome", "delivered, dead, or the code of a dead letter", OneOf(journal.Outcomes()))
	outcome.Choices = texts(journal.Outcomes())
	late := Parsed(&q.Lateness, "late-than", "only deliveries later than this, such as 1s",
		func(text string) (time.Duration, error) {
			d, err := levels.ParseDuration(text)
			if err != nil || d == 0 {
				err = errors.New("want a duration, such as 1s or 250ms")
			}
			return d, err
		})
	from := Parsed(&q.From, "from", "continue where an earlier search stopped: the value that it printed",
		journal.ParsePlace)
	u := &Use{Check: p.check}
	u.Params = append(p.params("ended"), pattern(&q.Target), id, outcome, late, from, b.rows(&q.Limit))
	u.Look = func(ctx context.Context, d *Desk, show func(any) error) (End, error) {
		now, err := d.JournalTime(ctx)
		if err != nil {
			return End{}, err
		}
		q.Since, q.Until, q.Progress = p.since.Time(now), p.until.Time(now), d.progress
		var rows []inspect.Record
		j, err := d.Journal(ctx, q, func(e journal.Entry) error {
			if q.Limit == 0 {
				return show(inspect.RecordOf(e))
			}
			rows = append(rows, inspect.RecordOf(e))
			return nil
		})
		// The journal has the order in which lanes ended messages, to about a second.
		slices.SortStableFunc(rows, func(a, b inspect.Record) int { return a.At.Compare(b.At) })
		for _, r := range rows {
			if err == nil {
				err = show(r)
			}
		}
		if err != nil {
			return End{}, err
		}
		end := End{Value: journalEnd{j.Complete(), j.MaxAge.Seconds(), j}, At: now, Notes: completeness(j)}
		if j.ContinueAt.Sequence > 0 {
			end.Next = map[string]string{"from": j.ContinueAt.String()}
		}
		return end, nil
	}
	return u
}

// completeness says which records may be missing.
func completeness(j inspect.JournalReport) (lines []string) {
	add := func(when bool, format string, args ...any) {
		if when {
			lines = append(lines, text.Sentence(fmt.Sprintf(format, args...)))
		}
	}
	kept := ""
	if !j.OldestBatch.IsZero() {
		kept = fmt.Sprintf("; the journal is kept for %s and begins at %s", levels.FormatDuration(j.MaxAge),
			text.Millisecond(j.OldestBatch))
	}
	add(true, "%s of %d searched%s", english.Plural(j.Found, "record", ""), j.ReadRecords, kept)
	add(j.BeginsLater, "MISSING: all earlier records: the journal begins later than the search")
	add(j.Dropped > 0, "MISSING: %s, dropped before %s: the journal's stream stored nothing, or too little",
		english.Plural(int(j.Dropped), "record", ""), text.Millisecond(j.DroppedUntil))
	add(j.Unstored > 0, "MISSING: %s, not stored yet: the journal's stream stores nothing, or too little",
		english.Plural(int(j.Unstored), "record", ""))
	add(len(j.WithoutJournal) > 0, "MISSING: deliveries of instances without a journal: %s",
		strings.Join(j.WithoutJournal, ", "))
	add(j.UnprovenMessages > 0, "%s in the journal's stream ignored: no valid seal",
		english.Plural(j.UnprovenMessages, "message", ""))
	add(j.Complete(), "complete: as far as the brokers know, no record of that interval is missing")
	return lines
}
