package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"delaybroker/broker/inspect"
	"delaybroker/broker/text"
	"delaybroker/cmd/delaybroker/terminal"
)

const (
	defaultPending     = 100
	maxPending         = 100_000
	defaultPendingRead = 200_000
)

func (a *app) pendingCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "pending",
		Short: "Find messages that wait, by target and by when they are due, and show one",
		Args:  noArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(a.pendingListCommand(), a.pendingShowCommand())
	return c
}

// pendingOptions are the flags of pending ls.
type pendingOptions struct {
	target, after, before, cursor string

	limit int
	most  uint64
}

func (a *app) pendingListCommand() *cobra.Command {
	var o pendingOptions
	c := &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List what waits in all lanes, in the order in which it is due",
		Long: `List what waits in all lanes, in the order in which it is due. With --json, a line for each message and one
for the end, which says where to go on.

due in    until it is delivered, or tried again if it was refused; dead: what is about to become a dead letter
bytes     of the body
attempts  refused so far

No more than --most headers are read: of a level, those that may be due before the last line; of the intake and the
retry lanes, which are in no order, all. A page therefore reads again what the pages before it read; --target reads
less. Where it stops before the end, it prints a cursor to go on from. That is a time and a Delay-Id, and stays good
while messages move from lane to lane. What moves while it looks may be missing: look again.

Times are by the server's clock. There is no cancelling by Delay-Id: see COOKBOOK.md.

exit codes: 0 listed, 1 failed, 2 bad arguments or settings`,
		Example: `  delaybroker pending ls --target 'orders.>' --due-before 10m
  delaybroker pending ls --due-after 2026-12-24T18:00:00Z --limit 1000 --json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			look, err := o.look()
			if err != nil {
				return err
			}
			return a.inspect(cmd, func(ctx context.Context, i *inspect.Inspector) error { return a.pending(ctx, i, look, o) })
		},
	}
	patternFlag(c.Flags(), &o.target, "target", "for this target; wildcards as in 'orders.>'")
	c.Flags().StringVar(&o.after, "due-after", "", "due then or later: a duration from now (10m), or a time with a zone")
	c.Flags().StringVar(&o.before, "due-before", "", "due before: likewise")
	c.Flags().StringVar(&o.cursor, "cursor", "", "go on where an earlier list stopped")
	countFlag(c.Flags(), &o.limit, "limit", "", defaultPending, 1, maxPending, "list so many at most")
	c.Flags().Uint64Var(&o.most, "most", defaultPendingRead, "read so many headers at most")
	return c
}

// look returns the query of the flags.
func (o pendingOptions) look() (inspect.PendingLook, error) {
	look := inspect.PendingLook{Target: o.target, Limit: o.limit, Most: o.most}
	if o.most == 0 {
		return look, fmt.Errorf("%w: --most 0: want 1 or more", errUsage)
	}
	var err error
	if look.After, err = border("--due-after", o.after); err != nil {
		return look, err
	}
	if look.Before, err = border("--due-before", o.before); err != nil {
		return look, err
	}
	if o.cursor != "" {
		if look.Cursor, err = inspect.ParseCursor(o.cursor); err != nil {
			return look, fmt.Errorf("%w: --cursor: %w", errUsage, err)
		}
	}
	return look, nil
}

// border parses a border; an empty value is none.
func border(flag, value string) (inspect.Border, error) {
	b, err := inspect.ParseBorder(value)
	if err != nil {
		return b, fmt.Errorf("%w: %s %q: want a duration from now (10m), or a time with a zone (2026-11-20T10:00:00Z)",
			errUsage, flag, value)
	}
	return b, nil
}

func (a *app) pending(ctx context.Context, i *inspect.Inspector, look inspect.PendingLook, o pendingOptions) error {
	l, err := i.Pending(ctx, look)
	if err != nil {
		return err
	}
	for _, w := range l.Messages {
		a.AsJSON(w)
	}
	if !a.AsJSON(l.End) {
		a.showPending(l, o)
	}
	return nil
}

func (a *app) showPending(l inspect.List, o pendingOptions) {
	t := a.Sheet([]terminal.Column{
		{Name: "due in"}, {Name: "target", Min: 10}, {Name: "delay-id", Drop: 2, Min: 12},
		{Name: "lane", Drop: 1, Min: 8}, {Name: "bytes", Drop: 4}, {Name: "attempts", Drop: 3},
	})
	for _, w := range l.Messages {
		target, id := terminal.OrDash(text.Printable(w.Target, 256)), text.Printable(w.ID, 256)
		t.Add(dueIn(w.Problem, w.Due, l.Time), target, id, w.Stream, w.Bytes, w.Attempts)
	}
	if len(l.Messages) > 0 {
		t.Print()
	}
	a.sayPending(l, o)
}

// sayPending prints what the list leaves out, and the flags of the next page.
func (a *app) sayPending(l inspect.List, o pendingOptions) {
	listed, read := terminal.Counted(len(l.Messages), "message"), terminal.Counted(int(l.Read), "header")
	said := []string{fmt.Sprintf("%s, %s read", listed, read)}
	said = append(said, leftOut(l.Silent, l.Bare && o.target != "")...)
	if l.More {
		said = append(said, "there may be more: "+o.goOn(l))
	}
	fmt.Fprintln(a.Err, strings.Join(said, "\n"))
}

// leftOut names the gaps of the list: streams that do not answer and, for a target, messages that may be for it.
func leftOut(silent []string, bare bool) (said []string) {
	if len(silent) > 0 {
		said = append(said, "left out: "+strings.Join(silent, ", "))
	}
	if bare {
		said = append(said, "left out: messages that name their target in a header (DELAY_HEADER_TARGETS)")
	}
	return said
}

// goOn returns the flags of the next page. If the query read too few headers, it raises their number, since the same
// number would end at the same place.
func (o pendingOptions) goOn(l inspect.List) string {
	if l.Short {
		o.most *= 2
	}
	var flags []string
	for _, f := range []struct {
		name, value string
		given       bool
	}{
		{"--target", o.target, o.target != ""},
		{"--due-after", o.after, o.after != ""},
		{"--due-before", o.before, o.before != ""},
		{"--limit", fmt.Sprint(o.limit), o.limit != defaultPending},
		{"--most", fmt.Sprint(o.most), o.most != defaultPendingRead},
		{"--cursor", l.Cursor, l.Cursor != ""},
	} {
		if f.given {
			flags = append(flags, f.name+" "+quoted(f.value))
		}
	}
	return strings.Join(flags, " ")
}

// quoted quotes an argument for a shell.
func quoted(word string) string {
	if strings.ContainsAny(word, "*> ") {
		return "'" + word + "'"
	}
	return word
}
