package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"delaybroker/broker/inspect"
	"delaybroker/cmd/delaybroker/terminal"
)

// errLettersLeft is returned when a run has not resent or not removed some of the selected letters. The output already
// says so.
var errLettersLeft = errors.New("some dead letters were left")

// letterRun is a run that resends or removes letters.
type letterRun struct {
	deadLetters
	*inspect.LetterWork
	dryRun  bool
	skipped []inspect.LetterOutcome // outcomes of the selected letters that are not in LetterWork
}

// letterSummary is the output of a run with --json. After a failure, it counts the letters done so far.
type letterSummary struct {
	DryRun   bool                    `json:"dry_run"`
	Complete bool                    `json:"complete"` // every selected letter has an outcome
	Outcomes []inspect.LetterOutcome `json:"outcomes"`
}

// runLetters resends or removes letters. It ends after the last letter, after a failure, or at a signal.
func (a *app) runLetters(ctx context.Context, w letterRun) error {
	interrupted, stop := withInterrupt(ctx)
	defer stop()
	tracker := progress{app: a}
	w.Query.Progress = tracker.update
	outcomes, err := w.Work(ctx, interrupted, w.LetterWork)
	tracker.bar.Stop()
	outcomes = append(outcomes, w.skipped...)
	a.showOutcomes(w, outcomes, err == nil)
	if err != nil {
		return err
	}
	return w.exitErr(outcomes)
}

func (a *app) showOutcomes(w letterRun, outcomes []inspect.LetterOutcome, complete bool) {
	if a.AsJSON(letterSummary{DryRun: w.dryRun, Complete: complete, Outcomes: outcomes}) {
		return
	}
	if len(outcomes) == 0 {
		if complete {
			a.Printf("%s\n", noLettersText(w.filter))
		}
		return
	}
	t := a.Sheet([]terminal.Column{
		{Name: "result"}, {Name: "letters"}, {Name: "reason", Min: 12, Wrap: true}, {Name: "example", Drop: 1},
	})
	for _, o := range outcomes {
		result, number := o.Outcome, ""
		if w.dryRun {
			result = "would be " + result
		}
		if o.Number > 0 {
			number = fmt.Sprint(o.Number)
		}
		t.Add(result, o.Letters, o.Reason, number)
	}
	t.Print()
}

// exitErr returns an error if letters were left, or if no letter has the given ids. The output already reports that
// error.
func (w letterRun) exitErr(outcomes []inspect.LetterOutcome) error {
	for _, o := range outcomes {
		if o.Outcome == inspect.LetterLeft {
			return reportedError{errLettersLeft}
		}
	}
	if len(outcomes) == 0 && len(w.filter.IDs)+len(w.filter.Sequences) > 0 {
		return reportedError{errNoLetter}
	}
	return nil
}

func (a *app) deadRemoveCommand() *cobra.Command {
	var choice letterChoice
	var dryRun bool
	c := &cobra.Command{
		Use:   "rm",
		Short: "Remove dead letters permanently",
		Long: `Remove dead letters permanently: their messages will never be delivered. The command does not remove letters
that are stored while it runs.

exit codes: 0 all selected letters were removed, 1 failed, or --id found no letter, 2 bad arguments or settings`,
		Example: `  delaybroker dead rm --code bad_time --until 7d --dry-run
  delaybroker dead rm --all`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := choice.check(); err != nil {
				return err
			}
			return a.withLetters(cmd.Context(), choice, func(ctx context.Context, d deadLetters) error {
				return a.runLetters(ctx, letterRun{deadLetters: d, LetterWork: d.RemovalWork(d.filter, dryRun), dryRun: dryRun})
			})
		},
	}
	choice.addFlags(c)
	c.Flags().BoolVar(&choice.all, "all", false, "all dead letters")
	c.Flags().BoolVar(&dryRun, "dry-run", false, "only show the outcome, and change nothing")
	return c
}
