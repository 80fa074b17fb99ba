package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"delaybroker/broker/deadletter"
	"delaybroker/broker/inspect"
	"delaybroker/broker/text"
	"delaybroker/cmd/delaybroker/terminal"
)

const defaultLetters = 100

// countColumns are the columns by which letters are counted.
var countColumns = []string{inspect.ByCode, inspect.ByTarget, inspect.ByReason}

func (a *app) deadListCommand() *cobra.Command {
	var choice letterChoice
	var limit int
	var by []string
	c := &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List dead letters, or count them by code, target or reason",
		Long: `List dead letters, the oldest first. With --by, count them instead, the largest group first. With --json, the
list has a line for each letter. With --by reason, two reasons are equal if they differ only in numbers, such as times
and attempts.

exit codes: 0 listed, 1 failed, 2 bad arguments or settings`,
		Example: `  delaybroker dead ls --code undelivered,expired --target 'orders.>'
  delaybroker dead ls --since 2h --limit 0 --json
  delaybroker dead ls --by code,target,reason`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withLetters(cmd.Context(), choice, func(ctx context.Context, d deadLetters) error {
				ctx, stop := withInterrupt(ctx)
				defer stop()
				if len(by) > 0 {
					return a.deadCount(ctx, d, by, limit)
				}
				return a.deadList(ctx, d, limit)
			})
		},
	}
	choice.addFlags(c)
	addCountFlag(c.Flags(), &limit, "limit", "", defaultLetters, 0, noBound,
		"maximum number of letters or groups; 0 for all")
	addListFlag(c, &by, "by", countColumns, "count the letters by some of code, target, reason")
	return c
}

func (a *app) deadList(ctx context.Context, d deadLetters, limit int) error {
	t := a.Sheet([]terminal.Column{
		{Name: "number"}, {Name: "dead since", Drop: 3}, {Name: "code", Min: 8},
		{Name: "target", Min: 10}, {Name: "refused", Drop: 5}, {Name: "bytes", Drop: 6},
		{Name: "delay-id", Drop: 4}, {Name: "reason", Min: 12},
	})
	listed, matching := 0, 0
	var selected uint64 // number of letters that the server has selected for the query
	tracker := progress{app: a, rows: true}
	q := deadletter.Query{Filter: d.filter, HeadersOnly: true, Progress: func(read, total uint64) {
		selected = total
		tracker.update(read, total)
	}}
	var failed error
	for l, err := range d.List(ctx, q) {
		if failed = cmp.Or(err, a.Failure()); failed != nil {
			break
		}
		if matching++; limit > 0 && listed == limit {
			if f := d.filter; f.Target == "" && f.Since.IsZero() && f.Until.IsZero() &&
				len(f.IDs)+len(f.Sequences) == 0 {
				matching = int(selected) // the server has counted the matching letters, so no further letter is read
				break
			}
			continue
		}
		listed++
		if a.AsJSON(newLetterView(l)) {
			continue
		}
		t.Add(l.Sequence, text.ShortMoment(l.At), string(l.Code), terminal.OrDash(text.Printable(l.Target, 256)),
			l.Attempts, l.Size, terminal.OrDash(text.Printable(l.ID, 256)), text.Printable(inspect.Reason(l), terminal.MaxCell))
	}
	switch {
	case a.JSON:
	case listed > 0:
		t.Print()
	case failed == nil:
		a.Printf("%s\n", noLettersText(d.filter))
		return nil
	}
	switch {
	case failed != nil:
	case matching > listed:
		const format = "%d of %d dead letters; --limit shows more, --by code,target,reason counts them\n"
		fmt.Fprintf(a.Err, format, listed, matching)
	case !a.JSON:
		fmt.Fprintln(a.Err, terminal.Counted(matching, "dead letter"))
	}
	return failed
}

func noLettersText(f deadletter.Filter) string {
	if f.SelectsAll() {
		return "no dead letters"
	}
	return "no matching dead letters"
}

func (a *app) deadCount(ctx context.Context, d deadLetters, by []string, limit int) error {
	tracker := progress{app: a}
	count, err := d.Count(ctx, d.filter, by, tracker.update)
	tracker.bar.Stop()
	if err != nil {
		return err
	}
	a.showCount(count, d.filter, by, limit)
	return nil
}

func (a *app) showCount(c inspect.LetterCount, f deadletter.Filter, by []string, limit int) {
	if a.AsJSON(c) {
		return
	}
	if c.Letters == 0 {
		a.Printf("%s\n", noLettersText(f))
		return
	}
	t := a.Sheet([]terminal.Column{
		{Name: "letters"}, {Name: "code", Min: 8}, {Name: "target", Min: 10},
		{Name: "reason", Min: 12, Wrap: true},
		{Name: "oldest", Drop: 2}, {Name: "newest", Drop: 1}, {Name: "example", Drop: 3},
	})
	for _, name := range countColumns {
		if !slices.Contains(by, name) {
			t.Hide(name)
		}
	}
	for i, g := range c.Groups {
		if limit > 0 && i == limit {
			break
		}
		t.Add(g.Letters, g.Code, text.Printable(g.Target, 256), text.Printable(g.Reason, 600),
			text.ShortMoment(g.Oldest), text.ShortMoment(g.Newest), fmt.Sprint(g.Number))
	}
	t.Print()
	note := ""
	if limit > 0 && len(c.Groups) > limit {
		note = fmt.Sprintf(", the first %d shown; --limit 0 shows all", limit)
	}
	letters, groups := terminal.Counted(c.Letters, "dead letter"), terminal.Counted(len(c.Groups), "group")
	fmt.Fprintf(a.Err, "%s in %s%s\n", letters, groups, note)
}
