package schedules

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"delaybroker/broker/message"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/change"
	"delaybroker/broker/timer/store"
)

// ErrEmpty is returned when a file without schedules would remove its whole set, and Apply.AllowEmpty is not set.
var ErrEmpty = errors.New("the file has no schedules; nothing was changed")

// maxAttempts is the maximum number of attempts to change one schedule while other clients change it.
const maxAttempts = 5

// Timers is the store of the schedules: a *store.Timers, or a wrapper of one.
type Timers interface {
	Read(ctx context.Context, key, target string) (timer.State, error)
	Do(ctx context.Context, w change.Change) (change.Answer, error)
	ListRecurring(ctx context.Context, f store.Filter) iter.Seq2[store.Row, error]
	Now(ctx context.Context) (time.Time, error) // by the clock of the stream's leader
}

// Apply changes the schedules of a set to those of a file.
type Apply struct {
	File       File
	Timers     Timers
	Policy     message.Policy
	Adopt      bool // take over schedules of other sets, or of no set
	DryRun     bool // change nothing
	NoRemoval  bool // remove nothing
	AllowEmpty bool // allow a file without schedules, which removes the whole set
}

// A Result is the result of a step.
type Result struct {
	Decision
	Outcome timer.Outcome // empty if no change was requested, or if the request failed
	Err     error         // error of a failed step
}

// scheduleKey identifies a schedule.
type scheduleKey struct{ name, target string }

// Run plans one step for each schedule of the file and, unless NoRemoval is set, for each other schedule of the file's
// set. Unless DryRun is set, it executes each step before it plans the next one, and continues after a failed step. If
// Run returns an error, it has changed nothing: the error is ErrEmpty, or the reason why it could not list the set.
func (a Apply) Run(ctx context.Context, report func(Result)) error {
	stale, err := a.staleKeys(ctx)
	if err != nil {
		return err
	}
	if len(a.File.Schedules) == 0 && len(stale) > 0 && !a.AllowEmpty {
		return fmt.Errorf("%w: the file would remove all %d schedules of the set %s", ErrEmpty, len(stale), a.File.Set)
	}
	for _, s := range a.File.Schedules {
		report(a.runStep(ctx, s.Name, s.Target, func(current timer.State, now time.Time) Decision {
			return a.File.plan(s, current, a.Policy, now, a.Adopt)
		}))
	}
	// The removals are last: a schedule with a new target is added before the one with the old target is removed.
	for _, p := range stale {
		report(a.runStep(ctx, p.name, p.target, func(current timer.State, _ time.Time) Decision {
			return a.File.removal(current, p.name, p.target)
		}))
	}
	return nil
}

// staleKeys returns the schedules of the set that are not in the file.
func (a Apply) staleKeys(ctx context.Context) (keys []scheduleKey, err error) {
	if a.NoRemoval {
		return nil, nil
	}
	known := make(map[scheduleKey]bool)
	for _, s := range a.File.Schedules {
		known[scheduleKey{s.Name, s.Target}] = true
	}
	for row, err := range a.Timers.ListRecurring(ctx, store.Filter{Set: a.File.Set}) {
		if err != nil {
			return nil, err
		}
		if p := (scheduleKey{row.Key, row.Target}); !known[p] {
			keys = append(keys, p)
			known[p] = true
		}
	}
	return keys, nil
}

// runStep reads a schedule, plans its step and, unless DryRun is set, executes it. The publish expects the entry that
// was read. If another client has replaced that entry meanwhile, or a round has fired, runStep tries again.
func (a Apply) runStep(
	ctx context.Context, name, target string, plan func(current timer.State, now time.Time) Decision,
) (r Result) {
	for attempt := 1; ; attempt++ {
		current, err := a.Timers.Read(ctx, name, target)
		var now time.Time
		if err == nil {
			now, err = a.Timers.Now(ctx)
		}
		if err != nil {
			return Result{Decision: Decision{Action: Leave, Name: name, Target: target}, Err: err}
		}
		r = Result{Decision: plan(current, now)}
		if a.DryRun || !r.changesEntry() {
			return r
		}
		answer, err := a.Timers.Do(ctx, r.change)
		r.Outcome, r.Err = answer.Outcome, err
		if answer.Why != "" {
			r.Why = answer.Why
		}
		retry := r.Outcome == timer.Conflict || r.Outcome == timer.TooLate
		if err != nil || !retry || attempt == maxAttempts || ctx.Err() != nil {
			return r
		}
	}
}

func (p Decision) changesEntry() bool {
	return p.Action == Add || p.Action == Change || p.Action == Remove
}

// Good reports whether the schedule now matches the file. In a dry run it reports whether the step would achieve that.
func (r Result) Good() bool {
	return r.Err == nil && r.Action != Leave && (r.Outcome == "" || r.Outcome == timer.Pending ||
		r.Outcome == timer.Cancelled || r.Outcome == timer.Fired || r.Action == Remove && r.Outcome == timer.NotFound)
}
