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
		Short: "Find waiting messages by target and due time, and show one",
		Args:  noArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(a.pendingListCommand(), a.pendingShowCommand())
	return c
}

func (a *app) pendingListCommand() *cobra.Command {
	var query inspect.PendingQuery
	c := &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List the waiting messages of all lanes, by due time",
		Long: `List the waiting messages of all lanes, by due time. With --json, the output has a line for each message and a
last line with the cursor of the next page.

due in    time until the delivery, or until the next attempt of a refused message; dead: CODE if the message is about to
          become a dead letter with this code
bytes     size of the body
attempts  refused attempts so far

The command reads at most --most headers. In a level, it reads only the messages that may be due before the last listed
one. The other lanes have no order, so it reads all their messages, again for each page. With --target, the command
reads fewer headers. If there are more messages, the command prints a cursor for the next page. The cursor is a time and
a Delay-Id, and stays valid when messages move from lane to lane. A message that moves while the command runs may be
missing from the list: run the command again.

Times are by the server's clock. Only timers can be cancelled: see delaybroker timers.

exit codes: 0 listed, 1 failed, 2 bad arguments or settings`,
		Example: `  delaybroker pending ls --target 'orders.>' --due-before 10m
  delaybroker pending ls --due-after 2026-12-24T18:00:00Z --limit 1000 --json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withInspector(cmd, func(ctx context.Context, i *inspect.Inspector) error {
				return a.pending(ctx, i, query, cmd.Flags())
			})
		},
	}
	f := c.Flags()
	addPatternFlag(f, &query.Target)
	addFlag(f, &query.MinDue, "due-after",
		"only due at this time or later: a duration from now (10m), or a time with a zone", parseBound)
	addFlag(f, &query.MaxDue, "due-before",
		"only due before this time: a duration from now, or a time with a zone", parseBound)
	addFlag(f, &query.Cursor, "cursor",
		"continue where an earlier list ended: the cursor that it printed", inspect.ParseCursor)
	addCountFlag(f, &query.Limit, "limit", "", defaultPending, 1, maxPending, "maximum number of messages")
	addCountFlag(f, &query.MaxRead, "most", "", defaultPendingRead, 1, noBound, "maximum number of headers to read")
	return c
}

func parseBound(text string) (inspect.Bound, error) {
	b, err := inspect.ParseBound(text)
	if err != nil {
		err = errors.New("want a duration from now (10m), or a time with a zone (2026-11-20T10:00:00Z)")
	}
	return b, err
}

func (a *app) pending(
	ctx context.Context, i *inspect.Inspector, query inspect.PendingQuery, flags *pflag.FlagSet,
) error {
	l, err := i.Pending(ctx, query)
	if err != nil {
		return err
	}
	for _, w := range l.Messages {
		a.AsJSON(w)
	}
	if !a.AsJSON(l.ListEnd) {
		a.showPending(l, query, flags)
	}
	return nil
}

func (a *app) showPending(l inspect.PendingList, query inspect.PendingQuery, flags *pflag.FlagSet) {
	t := a.Sheet([]terminal.Column{
		{Name: "due in"}, {Name: "target", Min: 10}, {Name: "delay-id", Drop: 2, Min: 12},
		{Name: "lane", Drop: 1, Min: 8}, {Name: "bytes", Drop: 4}, {Name: "attempts", Drop: 3},
	})
	for _, w := range l.Messages {
		target, id := terminal.OrDash(text.Printable(w.Target, 256)), text.Printable(w.ID, 256)
		t.Add(formatDueIn(w.Problem, w.Due, l.Time), target, id, w.Stream, w.Bytes, w.Attempts)
	}
	if len(l.Messages) > 0 {
		t.Print()
	}
	a.printGaps(l, query, flags)
}

func (a *app) printGaps(l inspect.PendingList, query inspect.PendingQuery, flags *pflag.FlagSet) {
	listed, read := terminal.Counted(len(l.Messages), "message"), terminal.Counted(int(l.Read), "header")
	lines := []string{fmt.Sprintf("%s, %s read", listed, read)}
	lines = append(lines, gapLines(l.SilentStreams, l.HeaderTargets && query.Target != "")...)
	if l.More {
		lines = append(lines, "there may be more: "+nextPage(flags, l, query.MaxRead))
	}
	fmt.Fprintln(a.Err, strings.Join(lines, "\n"))
}

// gapLines describes the gaps of the list: streams without an answer and, for a target, messages whose target is in a
// header.
func gapLines(silentStreams []string, hasHeaderTargets bool) (lines []string) {
	if len(silentStreams) > 0 {
		lines = append(lines, "left out: "+strings.Join(silentStreams, ", "))
	}
	if hasHeaderTargets {
		lines = append(lines, "left out: messages with their target in a header (DELAY_HEADER_TARGETS)")
	}
	return lines
}

// nextPage returns the flags of the next page. If --most ended the query before the page was full, nextPage raises
// --most, since the same number would end at the same place.
func nextPage(flags *pflag.FlagSet, l inspect.PendingList, maxRead uint64) string {
	if l.Truncated {
		_ = flags.Set("most", strconv.FormatUint(2*maxRead, 10)) // cannot fail: the value is within the bounds
	}
	_ = flags.Set("cursor", l.Cursor) // fails only for "", and then the next page begins at the first message
	var words []string
	for _, name := range []string{"target", "due-after", "due-before", "limit", "most", "cursor"} {
		if f := flags.Lookup(name); f.Value.String() != f.DefValue {
			words = append(words, "--"+name+" "+text.ShellQuote(f.Value.String()))
		}
	}
	return strings.Join(words, " ")
}
