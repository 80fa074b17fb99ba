package inspect

import (
	"context"
	"slices"
	"time"

	"delaybroker/broker/journal"
	"delaybroker/broker/text"
)

// runSpans are the spans of time before now that Runs searches in turn, until one contains enough runs. Zero is the
// whole journal, which usually contains far more than the latest runs of one schedule.
var runSpans = []time.Duration{time.Hour, 24 * time.Hour, 0}

// Run is a completed round of a schedule.
type Run struct {
	Round    int       `json:"round"` // from 1; a skipped round has no number
	ID       string    `json:"id"`
	Due      time.Time `json:"due,omitzero"`
	At       time.Time `json:"at"` // time at which the message was delivered or became a dead letter
	Outcome  string    `json:"outcome"`
	Late     float64   `json:"late_seconds"`
	Attempts int       `json:"attempts"`
	Reason   string    `json:"reason,omitempty"`
}

// Runs are the latest runs of a schedule, the newest first.
type Runs struct {
	Runs []Run `json:"runs"`
	// Complete is true if the journal has every record from the oldest of these runs on. If Runs has fewer runs than the
	// limit, Complete is true only if the whole journal is complete.
	Complete bool `json:"runs_complete"`
}

// Runs searches the journal for the latest runs of a series, identified by its generation. Limit is at least 1. A round
// whose message is in retry is not a run yet. If the stream of the journal does not exist, Runs returns
// journal.ErrNoJournal.
func (i *Inspector) Runs(ctx context.Context, series uint64, limit int) (Runs, error) {
	ctx, cancel := i.WithRefusal(ctx)
	defer cancel()
	runs := Runs{Runs: []Run{}}
	if err := i.streams.ReadKeys(ctx, i.JetStream); err != nil {
		return runs, Cause(ctx, err)
	}
	now, err := i.journal(nil).Now(ctx)
	if err != nil {
		return runs, Cause(ctx, err)
	}
	w := i.askWriters(ctx)
	for _, span := range runSpans {
		q := journal.Query{Series: series}
		if span > 0 {
			q.Since = now.Add(-span)
		}
		lastRuns := make([]Run, 0, limit+1)
		j, err := i.searchJournal(ctx, q, w, func(e journal.Entry) error {
			if lastRuns = append(lastRuns, runOf(e)); len(lastRuns) > limit {
				lastRuns = slices.Delete(lastRuns, 0, 1)
			}
			return nil
		})
		if err != nil {
			return runs, Cause(ctx, err)
		}
		var oldest time.Time
		if len(lastRuns) == limit {
			oldest = lastRuns[0].At
		}
		slices.Reverse(lastRuns)
		runs = Runs{Runs: lastRuns, Complete: j.completeSince(oldest)}
		if len(lastRuns) == limit {
			break
		}
	}
	return runs, nil
}

// completeSince reports whether the journal has all records from t on.
func (j JournalReport) completeSince(t time.Time) bool {
	return len(j.WithoutJournal) == 0 && j.MoreHoles == 0 && j.ContinueAt.Sequence == 0 &&
		!slices.ContainsFunc(j.Holes, func(h journal.Hole) bool { return h.To.After(t) })
}

func runOf(e journal.Entry) Run {
	return Run{
		Round: e.Round, ID: e.ID, Due: e.Due, At: e.At, Outcome: string(e.Outcome()), Late: e.Lateness.Seconds(),
		Attempts: e.Attempts(), Reason: text.Printable(e.Reason, 600),
	}
}
