package page

import (
	"context"
	"fmt"
	"strings"

	"delaybroker/broker/inspect"
	"delaybroker/broker/text"
)

// maxNotes is how many timers of a selection are named that nothing can be done to, or was not.
const maxNotes = 20

// pastOfVerb is what became of a timer that an action was done to.
var pastOfVerb = map[string]string{
	"cancel": "cancelled", "move": "moved", "fire": "fired", "pause": "paused", "resume": "resumed",
}

// single is the action on one of the selected timers.
func (d deed) single(t timerRef) deed {
	d.Timers, d.Key, d.Target, d.Generation = nil, t.Key, t.Target, t.Generation
	return d
}

// planSelected looks at each selected timer. Those of which nothing can be done are left out.
func planSelected(ctx context.Context, i *inspect.Inspector, d *deed) (plan, error) {
	if len(d.Timers) > mostRows || d.All {
		return plan{}, fmt.Errorf("%w: select %d timers at most", errAsked, mostRows)
	}
	var made plan
	var kept []timerRef
	var lines []string
	for _, t := range d.Timers {
		one := d.single(t)
		p, err := planTimers(ctx, i, &one)
		if err != nil {
			return plan{}, err
		}
		if one.Count == 0 {
			made.note(t.Key + ": " + p.Sentence)
			continue
		}
		kept = append(kept, timerRef{t.Key, t.Target, one.Generation})
		lines = append(lines, one.Shell)
	}
	d.Timers, d.Count, d.Shell = kept, uint64(len(kept)), strings.Join(lines, "\n")
	made.Sentence = d.Verb + " " + counting(d.Count, "timer")
	return made, nil
}

// actSelected does what was planned, one timer after the other. An error ends it: what was done until then is told.
func actSelected(ctx context.Context, i *inspect.Inspector, d deed) (done, error) {
	var all plan // for its notes
	n := 0
	for _, t := range d.Timers {
		one, err := actTimers(ctx, i, d.single(t))
		if err != nil && n == 0 {
			return done{}, err
		}
		if err != nil {
			all.note("then it failed: " + text.Printable(err.Error(), 300))
			break
		}
		if one.Good {
			n++
		} else {
			all.note(t.Key + ": " + one.Sentence)
		}
	}
	return done{
		Sentence: fmt.Sprintf("%d of %s %s", n, counting(d.Count, "timer"), pastOfVerb[d.Verb]), Notes: all.Notes,
		Good: uint64(n) == d.Count,
	}, nil
}

// note adds a note, unless there are many.
func (p *plan) note(said string) {
	if len(p.Notes) < maxNotes {
		p.Notes = append(p.Notes, text.Printable(said, 600))
	}
}
