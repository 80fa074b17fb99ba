package page

import (
	"context"
	"fmt"
	"net/url"
	"strconv"

	"delaybroker/broker/deadletter"
	"delaybroker/broker/inspect"
	"delaybroker/broker/text"
)

// letterWork is what a deed does to letters, and which. Dry does nothing, and says what would be done.
func (d *deed) letterWork(letters *inspect.Letters, dry bool) (*inspect.LetterWork, shell, error) {
	v := url.Values{"target": {d.Target}, "code": {d.Code}, "since": {d.Since}}
	for _, n := range append([]uint64{d.Number}, d.Numbers...) {
		if n > 0 {
			v.Add("number", strconv.FormatUint(n, 10))
		}
	}
	f, line, err := letterFilter(v, letters.Asked)
	if err != nil {
		return nil, nil, err
	}
	if f.All() {
		return nil, nil, fmt.Errorf("%w: which letters? a number, a code, a target or since when", errAsked)
	}
	f.Until = d.Before
	if d.Verb == "remove" {
		return letters.Removing(f, dry), append(shell{"dead", "rm"}, line...), nil
	}
	line = line.flag("--to", d.To)
	for _, flag := range []struct {
		name string
		set  bool
	}{{"--now", d.Now}, {"--unsealed", d.Unsealed}, {"--drop-expiry", d.DropExpiry}} {
		if flag.set {
			line = append(line, flag.name)
		}
	}
	change := deadletter.Change{Target: d.To, AtOnce: d.Now, Unsealed: d.Unsealed, DropExpiry: d.DropExpiry}
	return letters.Resending(f, change, dry), append(shell{"dead", "resend"}, line...), nil
}

func planLetters(ctx context.Context, i *inspect.Inspector, d *deed) (plan, error) {
	letters, err := i.Letters(ctx)
	if err != nil {
		return plan{}, err
	}
	if problem := i.Policy().CheckTarget(d.To); d.To != "" && problem != nil {
		return plan{}, fmt.Errorf("%w: to: %s", errAsked, problem.Sentence)
	}
	d.Before = letters.Asked.UTC()
	w, line, err := d.letterWork(letters, true)
	if err != nil {
		return plan{}, err
	}
	outcomes, err := letters.Work(ctx, ctx, w)
	if err != nil {
		return plan{}, err
	}
	n, notes := outcome(outcomes, w.Did)
	d.Count, d.Shell = n, line.String()
	return plan{Sentence: d.Verb + " " + counting(n, "dead letter"), Notes: notes}, nil
}

// outcome is how many letters were done, and what became of the others.
func outcome(all []inspect.LetterOutcome, did string) (n uint64, notes []string) {
	for _, o := range all {
		switch {
		case o.Did == did:
			n += uint64(o.Letters)
		case o.Why != "":
			notes = append(notes, fmt.Sprintf("%d %s: %s", o.Letters, o.Did, text.Printable(o.Why, 600)))
		default:
			notes = append(notes, fmt.Sprintf("%d %s", o.Letters, o.Did))
		}
	}
	return n, notes
}

func actLetters(ctx context.Context, i *inspect.Inspector, d deed) (done, error) {
	letters, err := i.Letters(ctx)
	if err != nil {
		return done{}, err
	}
	w, _, err := d.letterWork(letters, false)
	if err != nil {
		return done{}, err
	}
	outcomes, err := letters.Work(ctx, ctx, w)
	n, notes := outcome(outcomes, w.Did)
	if err != nil && n == 0 {
		return done{}, err
	}
	said := done{
		Sentence: fmt.Sprintf("%d of %s %s", n, counting(d.Count, "dead letter"), w.Did), Notes: notes,
		Good: err == nil && n == d.Count,
	}
	if err != nil {
		said.Notes = append(said.Notes, "then it failed: "+text.Printable(err.Error(), 600))
	}
	return said, nil
}
