package page

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"delaybroker/broker/deadletter"
	"delaybroker/broker/inspect"
	"delaybroker/broker/text"
)

// letterWork returns the work for an action on dead letters, and the equivalent command. If dry is set, the work only
// reports its effects, and changes nothing.
func (a *action) letterWork(letters *inspect.Letters, dry bool) (*inspect.LetterWork, shell, error) {
	v := url.Values{"target": {a.Target}, "code": {a.Code}, "since": {a.Since}}
	for _, n := range append([]uint64{a.Number}, a.Numbers...) {
		if n > 0 {
			v.Add("number", strconv.FormatUint(n, 10))
		}
	}
	f, line, err := letterFilter(v, letters.Opened)
	if err != nil {
		return nil, nil, err
	}
	if f.SelectsAll() {
		return nil, nil, fmt.Errorf("%w: want the number, the code, the target or the time of letters", errRequest)
	}
	if !a.Edit.IsZero() && (a.Number == 0 || a.Verb != "resend") {
		return nil, nil, fmt.Errorf("%w: edit: want a single letter, and the verb resend", errRequest)
	}
	f.Until = a.Cutoff
	if a.Verb == "remove" {
		return letters.RemovalWork(f, dry), append(shell{"dead", "rm"}, line...), nil
	}
	line = line.flag("--to", a.To)
	for _, flag := range []struct {
		name string
		set  bool
	}{{"--now", a.Now}, {"--unsealed", a.Unsealed}, {"--drop-expiry", a.DropExpiry}} {
		if flag.set {
			line = append(line, flag.name)
		}
	}
	line = line.flag("--drop-header", strings.Join(a.Edit.Drop, ","))
	for _, name := range slices.Sorted(maps.Keys(a.Edit.Set)) {
		for _, value := range a.Edit.Set[name] {
			line = line.flag("--header", name+": "+value)
		}
	}
	if a.Edit.Body != nil {
		line = line.flag("--body", "-") // the command reads the body from its standard input
	}
	change := deadletter.Change{
		Target: a.To, DeliverNow: a.Now, Unsealed: a.Unsealed, DropExpiry: a.DropExpiry, Edit: a.Edit,
	}
	return letters.ResendWork(f, change, dry), append(shell{"dead", "resend"}, line...), nil
}

func planLetters(ctx context.Context, i *inspect.Inspector, a *action) (plan, error) {
	letters, err := i.Letters(ctx)
	if err != nil {
		return plan{}, err
	}
	if problem := i.Policy().CheckTarget(a.To); a.To != "" && problem != nil {
		return plan{}, fmt.Errorf("%w: to: %s", errRequest, problem.Sentence)
	}
	a.Cutoff = letters.Opened.UTC()
	w, line, err := a.letterWork(letters, true)
	if err != nil {
		return plan{}, err
	}
	outcomes, err := letters.Work(ctx, ctx, w)
	if err != nil {
		return plan{}, err
	}
	n, notes := countOutcomes(outcomes, w.Outcome)
	a.Count, a.Shell = n, line.String()
	return plan{Sentence: a.Verb + " " + formatCount(n, "dead letter"), Notes: notes}, nil
}

// countOutcomes returns the number of letters with the outcome success, and a note about each other outcome.
func countOutcomes(outcomes []inspect.LetterOutcome, success string) (n uint64, notes []string) {
	for _, o := range outcomes {
		switch {
		case o.Outcome == success:
			n += uint64(o.Letters)
		case o.Reason != "":
			notes = append(notes, fmt.Sprintf("%d %s: %s", o.Letters, o.Outcome, text.Printable(o.Reason, 600)))
		default:
			notes = append(notes, fmt.Sprintf("%d %s", o.Letters, o.Outcome))
		}
	}
	return n, notes
}

func actLetters(ctx context.Context, i *inspect.Inspector, a action) (result, error) {
	letters, err := i.Letters(ctx)
	if err != nil {
		return result{}, err
	}
	w, _, err := a.letterWork(letters, false)
	if err != nil {
		return result{}, err
	}
	outcomes, err := letters.Work(ctx, ctx, w)
	n, notes := countOutcomes(outcomes, w.Outcome)
	if err != nil && n == 0 {
		return result{}, err
	}
	r := result{
		Sentence: fmt.Sprintf("%d of %s %s", n, formatCount(a.Count, "dead letter"), w.Outcome), Notes: notes,
		Good: err == nil && n == a.Count,
	}
	if err != nil {
		r.Notes = append(r.Notes, "stopped by an error: "+text.Printable(err.Error(), 600))
	}
	return r, nil
}
