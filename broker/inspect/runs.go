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

// Record is a record of the journal as a row of a list.
type Record struct {
	At       time.Time `json:"at"` // time at which the message was delivered or became a dead letter
	ID       string    `json:"id"`
	Target   string    `json:"target,omitempty"`
	Outcome  string    `json:"outcome"`
	Due      time.Time `json:"due,omitzero"`
	Late     float64   `json:"late_seconds"`
	Attempts int       `json:"attempts"`
	Reason   string    `json:"reason,omitempty"`
	Instance string    `json:"instance"`
	Round    int       `json:"round,omitempty"` // of a schedule, from 1
}

// Runs are the latest runs of a schedule, the newest first.
type Runs struct {
	Runs []Record `json:"runs"` // completed rounds
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
	runs := Runs{Runs: []Record{}}
	if err := i.streams.ReadKeys(ctx, i.JetStream); err != nil {
		return runs, Cause(ctx, err)
	}
	now, err := i.journal().Now(ctx)
	if err != nil {
		return runs, Cause(ctx, err)
	}
	w := i.askWriters(ctx)
	for _, span := range runSpans {
		q := journal.Query{Series: series}
		if span > 0 {
			q.Since = now.Add(-span)
		}
		lastRuns := make([]Record, 0, limit+1)
		j, err := i.searchJournal(ctx, q, w, func(e journal.Entry) error {
			if lastRuns = append(lastRuns, RecordOf(e)); len(lastRuns) > limit {
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
	if !t.IsZero() && !j.OldestBatch.After(t) && j.DroppedUntil.Before(t) {
		j.BeginsLater, j.Dropped = false, 0
	}
	return j.Complete()
}

// RecordOf returns the row of an entry.
func RecordOf(e journal.Entry) Record {
	return Record{
		At: e.At, ID: e.ID, Target: e.Target, Outcome: string(e.Outcome()), Due: e.Due, Late: e.Lateness.Seconds(),
		Attempts: e.Attempts(), Reason: text.Sentence(e.Reason), Instance: e.Instance, Round: e.Round,
	}
}
