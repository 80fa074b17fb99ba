package store

import (
	"context"
	"errors"
	"sync"
	"time"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/change"
)

const (
	// bulkParallel is the maximum number of timers of a page that are changed concurrently.
	bulkParallel = 16
	// bulkReserve is the time for bulkParallel changes and the answer. If less time is left until the deadline, Bulk ends
	// the page early, but not before the first bulkParallel changes.
	bulkReserve = 1500 * time.Millisecond
)

// Bulk is a change of many pending timers.
type Bulk struct {
	Verb   timer.Verb    // timer.Cancel, or timer.Move by the duration By
	By     time.Duration // may be negative
	DryRun bool          // only count the timers
	Filter Filter        // its State is ignored
	Page   Page
}

// BulkResult is the result of a page.
type BulkResult struct {
	Matched  int                   `json:"matched"`
	Outcomes map[timer.Outcome]int `json:"outcomes,omitempty"`
	Refused  int                   `json:"refused,omitempty"` // timers; in a dry run, those that a run would refuse
	Why      string                `json:"why,omitempty"`     // the key of the first refused timer, and the reason
	Sealed   bool                  `json:"-"`                 // a timer was refused with change.ErrSecret
	DryRun   bool                  `json:"dry_run,omitempty"`
	UpTo     uint64                `json:"up_to"`
	Next     uint64                `json:"next,omitempty"` // Page.Start of the next page; zero on the last page
	At       time.Time             `json:"at"`
}

// Add adds the result of a later page.
func (d *BulkResult) Add(later BulkResult) {
	d.Matched += later.Matched
	d.Refused += later.Refused
	d.Sealed = d.Sealed || later.Sealed
	if d.Why == "" {
		d.Why = later.Why
	}
	if d.Outcomes == nil {
		d.Outcomes = make(map[timer.Outcome]int)
	}
	for outcome, n := range later.Outcomes {
		d.Outcomes[outcome] += n
	}
	d.DryRun, d.UpTo, d.Next, d.At = later.DryRun, later.UpTo, later.Next, later.At
}

// Bulk changes the timers of one page. It changes only generations up to Page.UpTo. A moved timer has a higher
// generation, so a page that is repeated with the same UpTo moves no timer twice.
func (t *Timers) Bulk(ctx context.Context, b Bulk) (BulkResult, error) {
	if b.Verb == timer.Move && b.By == 0 {
		return BulkResult{}, change.Refusef(change.CodeBadRequest, "by is missing: want a duration, such as 5m or -5m")
	}
	b.Filter.State = timer.Pending
	page, err := t.List(ctx, b.Filter, b.Page)
	if err != nil {
		return BulkResult{}, err
	}
	d := BulkResult{
		Matched: len(page.Timers), DryRun: b.DryRun, UpTo: page.UpTo, Next: page.Next, At: page.At,
		Outcomes: make(map[timer.Outcome]int),
	}
	if b.DryRun {
		for _, row := range page.Timers {
			t.checkRow(ctx, b, row, &d)
		}
		return d, nil
	}
	for start := 0; start < len(page.Timers); start += bulkParallel {
		if start > 0 && (ctx.Err() != nil || nearDeadline(ctx, bulkReserve)) {
			d.Matched, d.Next = start, page.Timers[start-1].state.Sequence
			break
		}
		t.changeAll(ctx, b, page.Timers[start:min(start+bulkParallel, len(page.Timers))], &d)
	}
	d.At = time.Now().UTC() // for people
	return d, nil
}

func (b Bulk) change(row Row) change.Change {
	return change.Change{
		Call: timer.Call{Verb: b.Verb, Generation: row.Generation}, Key: row.Key, Target: row.Target, By: b.By,
	}
}

// checkRow counts a timer that a real run would refuse: it makes the entry, and does not publish the entry. A missing
// secret does not count, since the broker that carries out the change has the secret.
func (t *Timers) checkRow(ctx context.Context, b Bulk, row Row, d *BulkResult) {
	if err := t.Check(ctx, b.change(row), row.state); err != nil && !errors.Is(err, change.ErrSecret) {
		d.countRefusal(row, err)
	}
}

// countRefusal reports whether an error is a refusal, and counts the timer if so.
func (d *BulkResult) countRefusal(row Row, err error) bool {
	refused, ok := errors.AsType[*change.Error](err)
	if !ok {
		return false
	}
	d.Sealed = d.Sealed || errors.Is(err, change.ErrSecret)
	if d.Refused++; d.Why == "" {
		d.Why = row.Key + ": " + refused.Sentence
	}
	return true
}

// changeAll changes timers concurrently, waits for the results, and adds them to d.
func (t *Timers) changeAll(ctx context.Context, b Bulk, rows []Row, d *BulkResult) {
	var mu sync.Mutex // guards d
	var working sync.WaitGroup
	for _, row := range rows {
		working.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, jsapi.Timeout)
			defer cancel()
			answer, err := t.Do(ctx, b.change(row))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				d.Outcomes[answer.Outcome]++
			case !d.countRefusal(row, err):
				d.Outcomes[timer.Unknown]++
			}
		})
	}
	working.Wait()
}
