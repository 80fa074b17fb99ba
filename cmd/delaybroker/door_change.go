package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"delaybroker/broker/operation"
	"delaybroker/cmd/delaybroker/terminal"
)

// This file plans, confirms and shows changes.

// change plans a change if a person must confirm it, or for a dry run. Otherwise it changes at once.
func (w *door) change(
	ctx context.Context, d *operation.Desk, tracker *progress, check func(error) error,
) error {
	asks := w.Final && !w.yes && w.canAsk(w.stdin)
	if w.dryRun || asks {
		p, err := w.use.Plan(ctx, d)
		tracker.restart()
		if refused := check(err); refused != nil {
			return refused
		}
		if w.dryRun || err != nil || p.Count == 0 {
			w.showResult(p.Result, true)
			return errors.Join(err, exitOf(p.Result))
		}
		for _, note := range p.Notes {
			fmt.Fprintln(w.Err, note)
		}
		if err := w.ask(w.stdin, p.Sentence+"? This cannot be undone"); err != nil {
			return err
		}
	}
	r, err := w.use.Act(ctx, d)
	tracker.restart()
	if refused := check(err); refused != nil {
		return refused
	}
	w.showResult(r, false)
	return cmp.Or(err, exitOf(r))
}

// errDeclined is returned if a person does not confirm a change. Nothing was changed.
var errDeclined = errors.New("not confirmed: nothing was changed")

// canAsk reports whether a person can answer a question.
func (a *app) canAsk(stdin io.Reader) bool {
	return !a.JSON && terminal.IsTerminal(stdin) && terminal.IsTerminal(a.Err)
}

// ask asks a person to confirm, and returns an error unless the answer is yes.
func (a *app) ask(stdin io.Reader, question string) error {
	fmt.Fprintf(a.Err, "%s [y/N] ", question)
	answer, _ := bufio.NewReader(stdin).ReadString('\n') // at the end of the input, the answer is no
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		return reportedError{errDeclined}
	}
	return nil
}

// resultError is the outcome of a change that did not succeed in full. The output already has it.
type resultError struct{ code int }

func (e resultError) Error() string { return "some objects were not changed" }

// Exit returns the exit code.
func (e resultError) Exit() int { return e.code }

func exitOf(r operation.Result) error {
	if code := r.Exit(); code > 0 {
		return reportedError{resultError{code}}
	}
	return nil
}

func (w *door) showResult(r operation.Result, dry bool) {
	switch {
	case r.Value != nil && w.AsJSON(r.Value):
		return
	case r.Row != nil:
		w.printRows(w.columns(), []any{r.Row})
		return
	case len(r.Outcomes) == 0 && r.Sentence != "":
		w.Printf("%s\n", r.Sentence)
		for _, note := range r.Notes {
			fmt.Fprintln(w.Err, note)
		}
	case len(r.Outcomes) == 0:
	default:
		t := w.Sheet([]terminal.Column{
			{Name: "result"}, {Name: w.Noun + "s"}, {Name: "reason", Min: 12, Wrap: true}, {Name: "example", Drop: 1},
		})
		for _, o := range r.Outcomes {
			result := strings.ReplaceAll(o.Outcome, "_", " ")
			if dry {
				result = "would be " + result
			}
			t.Add(result, o.Count, o.Why, o.Example)
		}
		t.Print()
	}
}
