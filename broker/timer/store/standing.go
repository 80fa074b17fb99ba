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

// recurring is nil for an entry of a timer that does not recur, or not any more.
func recurring(e message.Entry) *Recurring {
	r := e.Request
	if r.Recurs == nil || e.Problem != nil || e.Kind != message.SetEntry && e.Kind != message.PausedEntry {
		return nil
	}
	return &Recurring{
		Table: r.Recurs.Table.String(), Round: r.Round, Series: r.Series, Planned: r.Recurs.Planned,
		Paused: e.Kind == message.PausedEntry, Set: r.Recurs.Owner, Of: *r.Recurs,
	}
}

// Standing is the last entry of a timer's subject.
type Standing struct {
	Sequence uint64 // zero where there is none; what is stored in its place has to expect it
	Entry    message.Entry
	Body     []byte
}

// Look reads the last entry of a timer's subject from the leader of the stream.
func (t *Timers) Look(ctx context.Context, key, target string) (Standing, error) {
	if problem := t.check(Change{Key: key, Target: target}); problem != nil {
		return Standing{}, Refusef(CodeBad, "%s", problem.Sentence)
	}
	a := t.attempt(Change{Request: timer.Request{Verb: timer.Get}, Key: key, Target: target})
	switch err := a.Run(ctx, a, false); {
	case err != nil:
		return Standing{}, err
	case a.Found.None:
		return Standing{}, nil
	case a.Found.Sequence == 0: // ctx had ended
		return Standing{}, ctx.Err()
	}
	return Standing{Sequence: a.Found.Sequence, Entry: a.Found.Entry, Body: a.In.Data}, nil
}

// Over reports whether nothing will come of it any more: there is none, or it only tells what became of one.
func (s Standing) Over() bool {
	return s.Sequence == 0 || s.Entry.Kind == message.CancelEntry || s.Entry.Kind == message.OverEntry ||
		s.Entry.Kind == message.SetEntry && s.Entry.Problem != nil
}

// Recurring is nil where it does not recur.
func (s Standing) Recurring() *Recurring { return recurring(s.Entry) }
