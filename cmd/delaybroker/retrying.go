package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"delaybroker/broker/inspect"
	"delaybroker/broker/text"
	"delaybroker/cmd/delaybroker/terminal"
)

const (
	defaultRetryGroups = 100
	defaultRetryRead   = 1_000_000
)

func (a *app) retryingCommand() *cobra.Command {
	var query inspect.RetryQuery
	var limit int
	c := &cobra.Command{
		Use:   "retrying",
		Short: "Show the messages in the retry lanes, by target",
		Long: `Show the messages in the retry lanes, by target, the largest group first.

state         refused: the target has refused the message
              deferred: the broker postponed the attempt, since the target is slow or silent, or JetStream has no room
              resent: from a dead letter, by delaybroker dead resend
              unreadable: a newer broker wrote the message, or no broker did
attempts      of the message that is closest to becoming a dead letter: 3 of 20 means 3 refused and 20 allowed attempts
next attempt  the time until the earliest attempt for a message of the group
last reason   the reason of the newest message; for another message, run delaybroker where <Delay-Id>
such as       the Delay-Id of the message with the earliest attempt

exit codes: 0 shown, 1 failed, 2 bad arguments or settings`,
		Example: `  delaybroker retrying --target 'shop.>'
  delaybroker retrying --from DELAY_RETRY_30s-1000001`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withInspector(cmd, func(ctx context.Context, i *inspect.Inspector) error {
				return a.retrying(ctx, i, query, limit)
			})
		},
	}
	f := c.Flags()
	addPatternFlag(f, &query.Target)
	addFlag(f, &query.From, "from",
		"continue where an earlier run stopped: the stream and sequence that it printed", parseRetryPosition)
	addCountFlag(f, &query.MaxRead, "most", "", defaultRetryRead, 1, noBound, "maximum number of messages to read")
	addCountFlag(f, &limit, "limit", "", defaultRetryGroups, 0, noBound,
		"maximum number of lines; 0 for all; --json always has all")
	return c
}

// parseRetryPosition parses the value of --from. It refuses a Delay-Id, which also contains a time.
func parseRetryPosition(text string) (inspect.MessageRef, error) {
	from, err := inspect.ParseMessageRef(text)
	if err != nil || !from.Partial {
		return from, errors.New("want a stream and a sequence, as in DELAY_RETRY_5s-1000")
	}
	return from, nil
}

func (a *app) retrying(ctx context.Context, i *inspect.Inspector, query inspect.RetryQuery, limit int) error {
	query.Progress = a.showSearchProgress
	r, err := i.Retrying(ctx, query)
	if errors.Is(err, inspect.ErrNoRetryLane) {
		return fmt.Errorf("%w: --from: %w", errUsage, err)
	}
	if err != nil {
		return err
	}
	if !a.AsJSON(r) {
		a.showRetrying(r, query, limit)
	}
	return nil
}

func (a *app) showRetrying(r inspect.RetryReport, query inspect.RetryQuery, limit int) {
	if r.Messages == 0 && r.Waiting == 0 {
		a.Printf("no message is in the retry lanes\n")
		a.printPaused(r.Paused)
		return
	}
	t := a.Sheet([]terminal.Column{
		{Name: "messages"}, {Name: "target", Min: 10}, {Name: "state", Drop: 3, Min: 8},
		{Name: "attempts", Drop: 2}, {Name: "next attempt in", Min: 7},
		{Name: "last reason", Min: 12, Wrap: true}, {Name: "such as", Drop: 4},
	})
	for i, g := range r.Groups {
		if limit > 0 && i == limit {
			break
		}
		t.Add(groupCells(r, g)...)
	}
	if len(r.Groups) > 0 {
		t.Print()
	}
	a.printPaused(r.Paused)
	a.printTotals(r, query, limit)
}

func groupCells(r inspect.RetryReport, g *inspect.RetryGroup) []any {
	attempts := "-"
	if g.Attempts > 0 {
		attempts = fmt.Sprint(g.Attempts)
	}
	if g.Allowed > 0 {
		attempts = fmt.Sprintf("%d of %d", g.Attempts, g.Allowed)
	}
	target := "all others"
	if g.Target != "" {
		target = text.Printable(g.Target, 256)
	}
	reason := terminal.OrDash(text.Printable(g.Reason, 600))
	next := formatDueIn("", g.Next, r.Time)
	return []any{g.Messages, target, string(g.State), attempts, next, reason, terminal.OrDash(g.ID)}
}

func (a *app) printTotals(r inspect.RetryReport, query inspect.RetryQuery, limit int) {
	var states []string
	for _, state := range []inspect.RetryState{inspect.Refused, inspect.Deferred, inspect.Resent, inspect.Unreadable} {
		if n := r.States[state]; n > 0 {
			states = append(states, fmt.Sprintf("%d %s", n, state))
		}
	}
	messages, groups := terminal.Counted(int(r.Messages), "message"), terminal.Counted(len(r.Groups), "line")
	summary := messages + " in " + groups
	if limit > 0 && len(r.Groups) > limit {
		summary += fmt.Sprintf(" (%d shown; --limit 0 shows all)", limit)
	}
	if len(states) > 0 {
		summary += ": " + strings.Join(states, ", ")
	}
	if r.Waiting != r.Messages {
		summary += fmt.Sprintf("; the retry lanes have %d", r.Waiting)
	}
	fmt.Fprintln(a.Err, summary)
	if r.NextPosition == "" {
		return
	}
	flags := "--from " + r.NextPosition
	if query.Target != "" {
		flags += " --target " + text.ShellQuote(query.Target)
	}
	fmt.Fprintf(a.Err, "stopped after %s; continue with %s, or raise --most\n", messages, flags)
}
