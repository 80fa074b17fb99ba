package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"delaybroker/broker/inspect"
	"delaybroker/broker/text"
	"delaybroker/cmd/delaybroker/terminal"
)

const (
	defaultRuns = 5
	maxRuns     = 1000
)

// lastRuns reads the last runs of a schedule from the journal. It opens another connection, since a user may be allowed
// to read the timers and not the journal: a refusal would end the requests of the first connection.
func (a *app) lastRuns(cmd *cobra.Command, series uint64, limit int) (runs inspect.Runs, err error) {
	if limit == 0 {
		return runs, nil
	}
	err = a.withInspector(cmd, func(ctx context.Context, i *inspect.Inspector) error {
		runs, err = i.Runs(ctx, series, limit)
		return err
	})
	return runs, err
}

// showRuns prints the last runs, or the reason why they are unknown.
func (a *app) showRuns(r inspect.Runs, problem error) {
	switch {
	case problem != nil:
		fmt.Fprintf(a.Err, "the last runs are unknown: %s\n", text.Printable(problem.Error(), 600))
		return
	case r.Runs == nil: // --runs 0
		return
	}
	if len(r.Runs) > 0 {
		a.Printf("\nlast runs\n")
		t := a.Sheet([]terminal.Column{
			{Name: "round"}, {Name: "due", Min: 20}, {Name: "outcome", Min: 9}, {Name: "late"},
			{Name: "attempts", Drop: 2}, {Name: "reason", Drop: 1, Min: 12, Wrap: true},
		})
		for _, run := range r.Runs {
			late := formatLateness(run.Due, time.Duration(run.Late*float64(time.Second)))
			t.Add(run.Round, terminal.OrDash(text.ShortMoment(run.Due)), run.Outcome, late, run.Attempts,
				terminal.OrDash(run.Reason))
		}
		t.Print()
	}
	summary := terminal.Counted(len(r.Runs), "run") + " in the journal"
	if !r.Complete {
		summary += "; records may be missing, see delaybroker journal"
	}
	fmt.Fprintln(a.Err, summary)
}
