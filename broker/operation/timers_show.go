package operation

import (
	"context"
	"time"

	"github.com/dustin/go-humanize/english"

	"delaybroker/broker/inspect"
	"delaybroker/broker/text"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/change"
	"delaybroker/broker/timer/store"
	"delaybroker/levels"
)

// Timer is one timer: its state, and for a schedule its table and its latest runs.
type Timer struct {
	change.Answer
	Unopened bool      `json:"unopened,omitempty"`
	First    time.Time `json:"first,omitzero"`
	Last     time.Time `json:"last,omitzero"`
	Missed   string    `json:"missed,omitempty"`
	Jitter   string    `json:"jitter,omitempty"`
	Rounds   int       `json:"rounds,omitempty"`
	Next     []Round   `json:"next,omitempty"` // the planned times of the rounds after the pending round
	Content
	*inspect.Runs
	RunsProblem string `json:"runs_problem,omitempty"` // why the last runs are unknown
}

// showTimer returns the uses of a look-up of one timer. A schedule may lack its target.
func showTimer(schedule bool) func(Bounds) *Use {
	return func(b Bounds) *Use {
		var c timerChoice
		limit := 0
		runs := Count(&limit, "runs", "number of last runs of a schedule to show; 0 for none", defaultRuns, 0, maxRuns)
		u := &Use{Params: c.name()}
		if schedule {
			u.Params, u.Check = c.scheduleName(), c.checkName
		}
		if b.MaxRows > 0 {
			limit = 2 * defaultRuns
		} else {
			u.Params = append(u.Params, runs)
		}
		u.Look = func(ctx context.Context, d *Desk, show func(any) error) (End, error) {
			if schedule {
				if err := c.findTarget(ctx, d); err != nil {
					return c.absent(err)
				}
			}
			answer, err := d.do(ctx, change.Change{Call: timer.Call{Verb: timer.Get}, Key: c.key, Target: c.target})
			if err != nil {
				return End{}, err
			}
			if _, isLocal := d.Timers.(*store.Timers); schedule && isLocal && answer.Outcome != timer.Unknown &&
				(answer.Recurring == nil || answer.Outcome == timer.Conflict) {
				return c.absent(errNoSchedule)
			}
			t := Timer{Answer: answer}
			t.readMore(ctx, d, c.key, limit)
			end := End{Answer: answer}
			if t.Runs != nil {
				summary := english.Plural(len(t.Runs.Runs), "run", "") + " in the journal"
				if !t.Complete {
					summary += "; records may be missing, see delaybroker journal"
				}
				end.Notes = []string{summary}
			}
			if exits[string(answer.Outcome)] > 0 {
				end.Exit = OutcomeError{answer.Outcome}
			}
			return end, show(t)
		}
		return u
	}
}

// readMore reads what the answer to a Get lacks. Without permission to read, the timer has only the answer.
func (t *Timer) readMore(ctx context.Context, d *Desk, key string, runs int) {
	local, isLocal := d.Timers.(*store.Timers)
	if !isLocal || d.Inspector == nil || t.Outcome == timer.NotFound || t.Generation == 0 {
		return
	}
	if s, err := local.Read(ctx, key, t.Target); err == nil && !s.NoEntry {
		if !d.HideContent {
			t.Content = Content{Size: len(s.Message.Data), Headers: s.Entry.Request.User, Payload: s.Message.Data}
		}
		t.Size = len(s.Message.Data)
	}
	if t.Recurring == nil {
		return
	}
	series := t.Recurring.Definition
	t.First, t.Last, t.Rounds, t.Missed = series.First, series.Table.Last, series.Table.Rounds, string(series.Table.Missed)
	if series.Table.Jitter > 0 {
		t.Jitter = levels.FormatDuration(series.Table.Jitter)
	}
	t.Next = roundsAfter(t.Recurring, maxUpcoming)
	if runs == 0 {
		return
	}
	// A user may be allowed to read the timers and not the journal. So a refusal ends only this part.
	reading, cancel := d.WithRefusal(ctx)
	defer cancel()
	if found, err := d.Runs(reading, t.Recurring.Series, runs); err == nil {
		t.Runs = &found
	} else {
		t.RunsProblem = text.Printable(err.Error(), 300)
	}
}

// Round is the planned time of a later round of a schedule.
type Round struct {
	At    time.Time `json:"at"`
	Clock string    `json:"clock"`                            // local time in the schedule's zone
	Shift float64   `json:"clocks_changed_seconds,omitempty"` // change of the zone's offset since the previous round
}

// maxUpcoming is the number of planned times in the row of a schedule.
const maxUpcoming = 3

// roundsAfter returns the planned times of at most limit rounds after the pending one.
func roundsAfter(r *change.Recurring, limit int) []Round {
	rounds, series := []Round{}, r.Definition
	for n, c := range series.Table.Occurrences(series.First, series.Planned, limit) {
		if series.Table.Rounds > 0 && r.Round+n >= series.Table.Rounds {
			break
		}
		rounds = append(rounds, Round{c.At.UTC(), c.At.Format("2006-01-02 15:04:05 MST"), c.Shift.Seconds()})
	}
	return rounds
}

// An OutcomeError is an outcome of one timer other than success.
type OutcomeError struct{ timer.Outcome }

func (e OutcomeError) Error() string { return "the outcome is " + string(e.Outcome) }

// Exit returns the exit code of the outcome.
func (e OutcomeError) Exit() int { return exits[string(e.Outcome)] }
