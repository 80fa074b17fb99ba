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

// participles are the participles of the verbs of actions on timers. Those of cancel and move are also outcomes.
var participles = map[string]string{
	"cancel": "cancelled", "move": "moved", "fire": "fired", "pause": "paused", "resume": "resumed",
}

// actionOn returns the action for one of the selected timers.
func (a action) actionOn(t timerRef) action {
	a.Timers, a.Key, a.Target, a.Generation = nil, t.Key, t.Target, t.Generation
	return a
}

// planSelected reads each selected timer, and plans the action for the timers that it can change.
func planSelected(ctx context.Context, i *inspect.Inspector, a *action) (plan, error) {
	if len(a.Timers) > maxRows || a.All {
		return plan{}, fmt.Errorf("%w: select at most %d timers", errRequest, maxRows)
	}
	var p plan
	var kept []timerRef
	var lines []string
	for _, t := range a.Timers {
		one := a.actionOn(t)
		planned, err := planTimers(ctx, i, &one)
		if err != nil {
			return plan{}, err
		}
		if one.Count == 0 {
			p.note(t.Key + ": " + planned.Sentence)
			continue
		}
		kept = append(kept, timerRef{t.Key, t.Target, one.Generation})
		lines = append(lines, one.Shell)
	}
	a.Timers, a.Count, a.Shell = kept, uint64(len(kept)), strings.Join(lines, "\n")
	p.Sentence = a.Verb + " " + counted(a.Count, "timer")
	return p, nil
}

// actSelected executes a plan for selected timers, one timer after the other. It stops at the first error. Then the
// result counts the timers that were changed before the error.
func actSelected(ctx context.Context, i *inspect.Inspector, a action) (result, error) {
	var made plan // only its notes
	n := 0
	for _, t := range a.Timers {
		one, err := actTimers(ctx, i, a.actionOn(t))
		if err != nil && n == 0 {
			return result{}, err
		}
		if err != nil {
			made.note("stopped by an error: " + text.Printable(err.Error(), 300))
			break
		}
		if one.Good {
			n++
		} else {
			made.note(t.Key + ": " + one.Sentence)
		}
	}
	return result{
		Sentence: fmt.Sprintf("%d of %s %s", n, counted(a.Count, "timer"), participles[a.Verb]), Notes: made.Notes,
		Good: uint64(n) == a.Count,
	}, nil
}

// note adds a note, unless the plan has maxNotes already.
func (p *plan) note(sentence string) {
	if len(p.Notes) < maxNotes {
		p.Notes = append(p.Notes, text.Printable(sentence, 600))
	}
}
