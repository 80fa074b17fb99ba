package store

import (
	"context"
	"time"

	"delaybroker/broker/message"
	"delaybroker/broker/timer"
)

// Recurring is what a row says of a timer that recurs.
type Recurring struct {
	Table   string    `json:"table"`            // for people
	Round   int       `json:"round"`            // the pending one, from 1
	Series  uint64    `json:"series"`           // the generation of its first set
	Planned time.Time `json:"planned,omitzero"` // by the table; it is due then, or a little later
	Paused  bool      `json:"paused,omitempty"`
	Set     string    `json:"set,omitempty"` // of schedules, that made it

	Of message.Series `json:"-"`
}

// RecurringOf is nil for an entry of a timer that does not recur, or not any more.
func RecurringOf(e message.Entry) *Recurring {
	r := e.Request
	if r.Recurs == nil || e.Problem != nil || e.Kind != message.SetEntry && e.Kind != message.PausedEntry {
		return nil
	}
	return &Recurring{
		Table: r.Recurs.Table.String(), Round: r.Round, Series: r.Series, Planned: r.Recurs.Planned,
		Paused: e.Kind == message.PausedEntry, Set: r.Recurs.Owner, Of: *r.Recurs,
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
		err = ctx.Err() // it had ended before the first read
	}
	return a.State, err
}
