package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

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

func (a *app) pendingListCommand() *cobra.Command {
	var look inspect.PendingLook
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
			return a.inspect(cmd, func(ctx context.Context, i *inspect.Inspector) error {
				return a.pending(ctx, i, look, cmd.Flags())
			})
		},
	}
	f := c.Flags()
	patternFlag(f, &look.Target, "target", "for this target; wildcards as in 'orders.>'")
	valueFlag(f, &look.After, "due-after",
		"due then or later: a duration from now (10m), or a time with a zone", parseBorder)
	valueFlag(f, &look.Before, "due-before", "due before: likewise", parseBorder)
	valueFlag(f, &look.Cursor, "cursor", "go on where an earlier list stopped", inspect.ParseCursor)
	countFlag(f, &look.Limit, "limit", "", defaultPending, 1, maxPending, "list so many at most")
	countFlag(f, &look.Most, "most", "", defaultPendingRead, 1, unbounded, "read so many headers at most")
	return c
}

func parseBorder(text string) (inspect.Border, error) {
	b, err := inspect.ParseBorder(text)
	if err != nil {
		err = errors.New("want a duration from now (10m), or a time with a zone (2026-11-20T10:00:00Z)")
	}
	return b, err
}

func (a *app) pending(
	ctx context.Context, i *inspect.Inspector, look inspect.PendingLook, flags *pflag.FlagSet,
) error {
	l, err := i.Pending(ctx, look)
	if err != nil {
		return err
	}
	for _, w := range l.Messages {
		a.AsJSON(w)
	}
	if !a.AsJSON(l.End) {
		a.showPending(l, look, flags)
	}
	return nil
}

func (a *app) showPending(l inspect.List, look inspect.PendingLook, flags *pflag.FlagSet) {
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
	a.sayPending(l, look, flags)
}

// sayPending prints what the list leaves out, and the flags of the next page.
func (a *app) sayPending(l inspect.List, look inspect.PendingLook, flags *pflag.FlagSet) {
	listed, read := terminal.Counted(len(l.Messages), "message"), terminal.Counted(int(l.Read), "header")
	said := []string{fmt.Sprintf("%s, %s read", listed, read)}
	said = append(said, leftOut(l.Silent, l.Bare && look.Target != "")...)
	if l.More {
		said = append(said, "there may be more: "+nextPage(flags, l, look.Most))
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

// nextPage returns the flags of the next page. If the query read too few headers, it raises their number, since the
// same number would end at the same place.
func nextPage(flags *pflag.FlagSet, l inspect.List, most uint64) string {
	if l.Short {
		_ = flags.Set("most", strconv.FormatUint(2*most, 10)) // within its bounds
	}
	_ = flags.Set("cursor", l.Cursor) // there is none before the first message
	var given []string
	for _, name := range []string{"target", "due-after", "due-before", "limit", "most", "cursor"} {
		if f := flags.Lookup(name); f.Value.String() != f.DefValue {
			given = append(given, "--"+name+" "+quoted(f.Value.String()))
		}
	}
	return strings.Join(given, " ")
}

// quoted quotes an argument for a shell.
func quoted(word string) string {
	if strings.ContainsAny(word, "*> ") {
		return "'" + word + "'"
	}
	return word
}
