package main

import (
	"cmp"
	"context"
	"iter"
	"strconv"

	"github.com/spf13/cobra"

	"delaybroker/broker/inspect"
	"delaybroker/broker/text"
	"delaybroker/broker/timer/store"
	"delaybroker/cmd/delaybroker/terminal"
)

func (a *app) schedulesListCommand() *cobra.Command {
	var o timerSelection
	var set string
	c := &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List schedules",
		Long: `List schedules, in the order in which their pending rounds were stored. The command reads the headers of all
timers of the targets.

exit codes: 0 shown, 1 failed, 2 bad arguments or settings`,
		Example: "  delaybroker schedules ls --target 'reports.>' --name 'night*'",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f := o.filter()
			f.Set = set
			err := a.withTimers(cmd.Context(), func(ctx context.Context, timers *store.Timers) error {
				err := a.listSchedules(ctx, timers.ListRecurring(ctx, f))
				if mayNotRead(ctx, timers) {
					return errMayNotRead // usually for the first page, before any row is printed
				}
				return err
			})
			return a.fallBackToBroker(err, func() error {
				return a.listSchedules(cmd.Context(), a.askRecurring(cmd.Context(), f))
			})
		},
	}
	addPatternFlag(c.Flags(), &o.target)
	c.Flags().StringVar(&o.key, "name", "", "only with this name; * for any characters, as in 'night*'")
	c.Flags().StringVar(&set, "set", "", "only of this set: see schedules apply")
	return c
}

// secretUnknown replaces the due time of an entry whose seal this command cannot verify.
const secretUnknown = "secret unknown"

func (a *app) listSchedules(ctx context.Context, rows iter.Seq2[store.Row, error]) error {
	sheet := a.Sheet([]terminal.Column{{Name: "name", Min: 8}, {Name: "target", Min: 10},
		{Name: "recurs", Drop: 1, Min: 10}, {Name: "round", Drop: 2}, {Name: "due"}, {Name: "set", Drop: 3, Min: 6},
		{Name: "bytes", Drop: 4}})
	for r, err := range rows {
		if err = cmp.Or(err, a.Failure()); err != nil {
			return inspect.Cause(ctx, convertRefusal(err))
		}
		if a.AsJSON(r) {
			continue
		}
		due := "paused"
		if !r.Recurring.Paused {
			due = text.ShortMoment(r.Due)
		}
		if r.Unopened {
			due = secretUnknown
		}
		sheet.Add(r.Key, r.Target, r.Recurring.Table, strconv.Itoa(r.Recurring.Round), due, r.Recurring.Set,
			strconv.Itoa(r.Size))
	}
	switch {
	case a.JSON:
	case sheet.Len() == 0:
		a.Printf("no schedules\n")
	default:
		sheet.Print()
	}
	return nil
}
