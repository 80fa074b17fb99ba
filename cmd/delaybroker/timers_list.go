package main

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"delaybroker/broker/inspect"
	"delaybroker/broker/text"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/store"
	"delaybroker/cmd/delaybroker/terminal"
)

func (a *app) timersListCommand() *cobra.Command {
	var o timerSelection
	c := &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List timers",
		Long: `List pending timers, or those in another --state, in the order in which they were set or moved. The command
reads the headers of all timers of the targets. --limit bounds the number of rows, and --after continues a list.

exit codes: 0 shown, 1 failed, 2 bad arguments or settings`,
		Example: "  delaybroker timers ls --target 'orders.>' --key 'order-*' --due-to 2026-12-24T18:00:00Z",
		Args:    noArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.timersList(cmd.Context(), o) },
	}
	o.addFlags(c)
	c.Flags().StringVar(&o.state, "state", "pending",
		"pending, paused, fired (already delivered or not), cancelled, or all")
	addCompletion(c, "state", "pending", "paused", "fired", "cancelled", "all")
	c.Flags().Uint64Var(&o.after, "after", 0, "continue after this sequence, which an earlier list printed")
	addCountFlag(c.Flags(), &o.limit, "limit", "", 100, 0, noBound, "maximum number of timers; 0 for all")
	return c
}

func (a *app) timersList(ctx context.Context, o timerSelection) error {
	f := o.filter()
	if f.State = timer.Outcome(o.state); o.state == "all" {
		f.State = ""
	}
	err := a.withTimers(ctx, func(ctx context.Context, timers *store.Timers) error {
		err := a.listTimers(ctx, timers.List, f, o)
		if mayNotRead(ctx, timers) {
			return errMayNotRead // usually for the first page, before any row is printed
		}
		return err
	})
	return a.fallBackToBroker(err, func() error { return a.listTimers(ctx, a.askList, f, o) })
}

// listFunc returns a page of timers: [store.Timers.List], or askList.
type listFunc func(context.Context, store.Filter, store.Page) (store.Listing, error)

// listTimers lists page by page, up to the last page or --limit.
func (a *app) listTimers(ctx context.Context, list listFunc, f store.Filter, o timerSelection) error {
	rows := a.Sheet([]terminal.Column{{Name: "key", Min: 8}, {Name: "target", Min: 10},
		{Name: "state", Drop: 1}, {Name: "generation", Drop: 2}, {Name: "due"}, {Name: "recurs", Drop: 3, Min: 10},
		{Name: "bytes", Drop: 4}})
	recurs := false
	page := store.Page{Start: o.after, Limit: store.MaxLimit}
	for shown := 0; ; {
		if o.limit > 0 {
			page.Limit = min(store.MaxLimit, o.limit-shown)
		}
		l, err := list(ctx, f, page)
		if err = cmp.Or(err, a.Failure()); err != nil {
			return inspect.Cause(ctx, convertRefusal(err))
		}
		for _, r := range l.Timers {
			a.addTimer(rows, r)
			recurs = recurs || r.Recurring != nil
		}
		shown += len(l.Timers)
		page.Start, page.UpTo = l.Next, l.UpTo
		if l.Next == 0 || o.limit > 0 && shown >= o.limit {
			break
		}
	}
	if !recurs {
		rows.Hide("recurs")
	}
	if !a.JSON && rows.Len() == 0 {
		a.Printf("no timers\n")
	} else if !a.JSON {
		rows.Print()
	}
	if page.Start > 0 {
		fmt.Fprintf(a.Err, "there may be more: continue with --after %d\n", page.Start)
	}
	return nil
}

func (a *app) addTimer(rows *terminal.Sheet, r store.Row) {
	if a.AsJSON(r) {
		return
	}
	state := string(r.State)
	if r.Delivery != "" {
		state = string(r.Delivery)
	}
	rows.Add(r.Key, r.Target, state, strconv.FormatUint(r.Generation, 10), text.ShortMoment(r.Due),
		recurrenceText(r.Recurring), strconv.Itoa(r.Size))
}

// recurrenceText describes the recurrence of a timer and its pending round, or returns "" for a timer that fires once.
func recurrenceText(r *store.Recurring) string {
	if r == nil {
		return ""
	}
	return fmt.Sprintf("%s, round %d", r.Table, r.Round)
}
