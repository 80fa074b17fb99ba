package page

import (
	"context"
	"fmt"
	"strings"

	"delaybroker/broker/inspect"
	"delaybroker/broker/text"
)

// maxNotes is the maximum number of notes about selected timers.
const maxNotes = 20

// notes are about the selected timers that an action does not change.
type notes []string

// participles has the past participle of each verb. Those of cancel and move are also values of timer.Outcome.
var participles = map[string]string{
	"cancel": "cancelled", "move": "moved", "fire": "fired", "pause": "paused", "resume": "resumed",
}

func (a action) actionOn(t timerRef) action {
	a.Timers, a.Key, a.Target, a.Generation = nil, t.Key, t.Target, t.Generation
	return a
}

// planSelected reads each selected timer, and plans the action for the timers that it can change.
func planSelected(ctx context.Context, i *inspect.Inspector, a *action) (plan, error) {
	switch {
	case a.All:
		return plan{}, fmt.Errorf("%w: all and a list of timers exclude each other: give one of them", errRequest)
	case len(a.Timers) > maxRows:
		return plan{}, fmt.Errorf("%w: select at most %d timers", errRequest, maxRows)
	}
	var skipped notes
	var changeable []timerRef
	var lines []string
	for _, t := range a.Timers {
		single := a.actionOn(t)
		planned, err := planTimers(ctx, i, &single)
		if err != nil {
			return plan{}, err
		}
		if single.Count == 0 {
			skipped.add(t.Key + ": " + planned.Sentence)
			continue
		}
		changeable = append(changeable, timerRef{t.Key, t.Target, single.Generation})
		lines = append(lines, single.Shell)
	}
	a.Timers, a.Count, a.Shell = changeable, uint64(len(changeable)), strings.Join(lines, "\n")
	return plan{Sentence: a.Verb + " " + formatCount(a.Count, "timer"), Notes: skipped}, nil
}

// actSelected executes a plan for selected timers, one timer after the other. It stops at the first error. If it has
// changed a timer before the error, it returns no error, and the error is in the notes of the result.
func actSelected(ctx context.Context, i *inspect.Inspector, a action) (result, error) {
	var failed notes
	n := 0
	for _, t := range a.Timers {
		r, err := actTimers(ctx, i, a.actionOn(t))
		if err != nil && n == 0 {
			return result{}, err
		}
		if err != nil {
			failed.add("stopped by an error: " + text.Printable(err.Error(), 300))
			break
		}
		if r.Good {
			n++
		} else {
			failed.add(t.Key + ": " + r.Sentence)
		}
	}
	return result{
		Sentence: fmt.Sprintf("%d of %s %s", n, formatCount(a.Count, "timer"), participles[a.Verb]), Notes: failed,
		Good: uint64(n) == a.Count,
	}, nil
}

func (n *notes) add(sentence string) {
	if len(*n) < maxNotes {
		*n = append(*n, text.Printable(sentence, 600))
	}
}
