package store

import (
	"context"
	"time"

	"delaybroker/broker/timer"
	"delaybroker/broker/timer/entry"
)

// Recurring is the part of a row about a recurring timer.
type Recurring struct {
	Table   string    `json:"table"`            // for people
	Round   int       `json:"round"`            // the number of the pending round, from 1
	Series  uint64    `json:"series"`           // the generation of its first set
	Planned time.Time `json:"planned,omitzero"` // the time by the table; with jitter, the round is due a little later
	Paused  bool      `json:"paused,omitempty"`
	Set     string    `json:"set,omitempty"` // the set of schedules to which the series belongs

	Of entry.Series `json:"-"`
}

// RecurringOf describes the recurring timer of an entry. It returns nil if the timer fires only once, or is not pending
// any more.
func RecurringOf(e entry.Entry) *Recurring {
	if e.Recurs == nil || !e.PendingOrPaused() {
		return nil
	}
	r, of := *e.Recurs, e.Origin()
	return &Recurring{
		Table: r.Table.String(), Round: of.Round, Series: of.Series, Planned: r.Planned,
		Paused: e.Kind == entry.Paused, Set: r.Owner, Of: r,
	}
}

// Read reads the state of a timer.
func (t *Timers) Read(ctx context.Context, key, target string) (timer.State, error) {
	change := Change{Request: timer.Request{Verb: timer.Get}, Key: key, Target: target}
	if problem := t.check(change); problem != nil {
		return timer.State{}, Refusef(CodeBad, "%s", problem.Sentence)
	}
	a := t.attempt(change)
	err := a.Run(ctx, a, false)
	if err == nil && a.State.Sequence == 0 && !a.State.None {
		err = ctx.Err() // ctx had ended before the first read
	}
	return a.State, err
}
