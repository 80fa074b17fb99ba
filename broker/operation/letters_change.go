package operation

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"

	"delaybroker/broker/deadletter"
	"delaybroker/broker/inspect"
	"delaybroker/broker/message"
	"delaybroker/broker/text"
)

// LetterSummary is the result of a change of dead letters, as JSON. After a failure, it counts the letters done so far.
type LetterSummary struct {
	DryRun   bool      `json:"dry_run"`
	Complete bool      `json:"complete"` // every selected letter has an outcome
	Outcomes []Outcome `json:"outcomes"`
}

func resendLetters(Bounds) *Use {
	var c letterChoice
	var change deadletter.Resend
	edit := &change.Edit
	to := word(&change.Target, "to", "deliver to this subject, instead of the letter's target")
	now := flag(&change.DeliverNow, "now", "deliver immediately; for requests whose due time is unknown")
	expiry := flag(&change.DropExpiry, "drop-expiry", "deliver even if Delay-Expires has passed")
	unsealed := flag(&change.Unsealed, "unsealed", "deliver even if no seal proves that a broker wrote the letter")
	for _, p := range []*Param{to, now, expiry, unsealed} {
		p.Field = true
	}
	edit.Set = message.Header{}
	set := Headers(edit.Set, "set this header, 'Key: value'; replaces the headers with this key")
	drop := List(&edit.Drop, "drop-header", "remove this header", func(text string) (string, error) { return text, nil })
	return c.change("resend", []*Param{to, now, unsealed, expiry, set, drop, body(&edit.Body, "set this body")},
		func() string { return change.Target },
		func(ctx context.Context, d *Desk, l *inspect.Letters, f deadletter.Filter, dry bool) (*inspect.LetterWork, error) {
			// A problem of --to or of the headers concerns all letters, so it is reported before the first.
			if problem := d.Policy().CheckTarget(change.Target); change.Target != "" && problem != nil {
				return nil, invalidParam("to", "%s", problem.Sentence)
			}
			any := message.Letter{Request: message.Request{Due: l.Time()}}
			if _, problem := d.Policy().Edit(any, edit.HeaderEdit, l.Time()); problem != nil {
				return nil, invalid("%s", problem.Sentence)
			}
			return l.ResendWork(f, change, dry), nil
		})
}

func removeLetters(Bounds) *Use {
	var c letterChoice
	return c.change("remove", nil, func() string { return "" },
		func(_ context.Context, _ *Desk, l *inspect.Letters, f deadletter.Filter, dry bool) (*inspect.LetterWork, error) {
			return l.RemovalWork(f, dry), nil
		})
}

// change returns the use of a change of the chosen letters, with more parameters. To is the new target, or empty.
func (c *letterChoice) change(
	verb string, more []*Param, to func() string,
	work func(context.Context, *Desk, *inspect.Letters, deadletter.Filter, bool) (*inspect.LetterWork, error),
) *Use {
	choice := append(c.params(), flag(&c.all, "all", "all dead letters"))
	for _, p := range choice {
		p.Field = false // a form has no field for what is selected already
	}
	u := &Use{Params: append(choice, more...), Check: c.check}
	about := choiceFacts{targets: make(map[string]bool)} // of a plan
	run := func(ctx context.Context, d *Desk, dry bool) (r Result, done int, err error) {
		letters, f, err := c.open(ctx, d)
		if err != nil {
			return r, 0, err
		}
		if dry { // letters that are stored later are not counted
			u.fix("before", letters.Opened.UTC().Format(time.RFC3339Nano))
			f.Until = c.before
		}
		w, err := work(ctx, d, letters, f, dry)
		if err != nil {
			return r, 0, err
		}
		w.Keep, w.Query.Progress = c.keep, d.progress
		if dry {
			w.Keep = func(l deadletter.Letter) bool {
				kept := c.keep(l)
				if kept {
					about.add(l)
				}
				return kept
			}
		}
		// An end of ctx ends the run after the letters that are in progress.
		working, cancel := d.WithRefusal(context.WithoutCancel(ctx))
		defer cancel()
		r.Outcomes, err = letters.Work(working, ctx, w)
		err = inspect.Cause(working, err)
		total := 0
		for _, o := range r.Outcomes {
			if total += o.Count; o.Outcome == w.Outcome {
				done += o.Count
				continue
			}
			r.Notes = append(r.Notes, sentence(o))
		}
		r.Value = LetterSummary{DryRun: dry, Complete: err == nil, Outcomes: r.Outcomes}
		r.Sentence = fmt.Sprintf("%d of %s %s", done, english.Plural(total, "dead letter", ""), w.Outcome)
		r.Good = err == nil && done == total
		if total == 0 {
			r.Sentence, r.Empty = c.nothing(f), len(f.IDs)+len(f.Sequences) > 0
		}
		return r, done, err
	}
	u.Plan = func(ctx context.Context, d *Desk) (Plan, error) {
		r, count, err := run(ctx, d, true)
		p := Plan{Count: uint64(count), Notes: r.Notes, Result: r}
		p.Sentence = verb + " " + english.Plural(count, "dead letter", "")
		if target := cmp.Or(to(), about.targetOf()); verb == "resend" && count > 0 && target != "" {
			p.Sentence += " to " + target
		}
		if verb == "resend" && about.reason != "" {
			p.Notes = append(p.Notes, "the reason of the newest: "+about.reason)
		}
		return p, err
	}
	u.Act = func(ctx context.Context, d *Desk) (Result, error) {
		r, _, err := run(ctx, d, false)
		return r, err
	}
	return u
}

// choiceFacts are facts about the letters that a plan selects.
type choiceFacts struct {
	targets map[string]bool // at most maxNamed
	reason  string          // of the newest letter
}

// maxNamed is the maximum number of targets that a plan counts.
const maxNamed = 1000

// add adds a letter.
func (f *choiceFacts) add(l deadletter.Letter) {
	if len(f.targets) < maxNamed {
		f.targets[l.Target] = true
	}
	f.reason = inspect.Reason(l)
}

// targetOf names the target of the letters, or the number of targets.
func (f *choiceFacts) targetOf() string {
	for target := range f.targets {
		if len(f.targets) == 1 {
			return target
		}
	}
	return english.Plural(len(f.targets), "target", "")
}

// sentence returns an outcome for people.
func sentence(o Outcome) string {
	s := fmt.Sprintf("%d %s", o.Count, strings.ReplaceAll(o.Outcome, "_", " "))
	if o.Why != "" {
		s += ": " + o.Why
	}
	return text.Sentence(s)
}
