package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"delaybroker/broker/inspect"
	"delaybroker/broker/message"
	"delaybroker/broker/pause"
	"delaybroker/broker/text"
	"delaybroker/cmd/delaybroker/terminal"
)

func (a *app) pauseCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "pause [PATTERN]",
		Short: "Pause the targets of a pattern, or list the paused patterns",
		Long: `Pause the targets of a pattern. Messages that become due for these targets wait in the streams until the
pattern is resumed, even if brokers restart. The wait does not count as an attempt. When the command succeeds, every
running instance has confirmed the pause, and sends nothing to these targets. A broker that starts later observes the
pause too.

Patterns may overlap: a target is paused while at least one paused pattern matches it. A pause does not extend
Delay-Expires, which is checked when the target is resumed.

Without a pattern, the command lists the paused patterns with their times and the number of waiting messages.

exit codes: 0 done, 1 failed, or some instances have not confirmed the stored change, 2 bad arguments or settings`,
		Example: `  delaybroker pause 'orders.>'
  delaybroker pause --json`,
		Args: argumentsBetween(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.withInspector(cmd, a.listPauses)
			}
			return a.changePauses(cmd, args[0], (*inspect.Inspector).Pause)
		},
	}
}

func (a *app) resumeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "resume PATTERN",
		Short: "Resume the targets of a paused pattern",
		Long: `Resume the targets of a paused pattern. The waiting messages are delivered in the order of their due times, as
fast as the targets and DELAY_RATE allow. Messages that become due meanwhile follow them.

Give the pattern exactly as it was paused. If another paused pattern matches some of the targets, their messages
continue to wait.

exit codes: 0 done, 1 failed, or the pattern is not paused, or some instances have not confirmed the stored change, 2
bad arguments or settings`,
		Example: `  delaybroker resume 'orders.>'`,
		Args:    argumentsBetween(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.changePauses(cmd, args[0], (*inspect.Inspector).Resume)
		},
	}
}

func (a *app) changePauses(
	cmd *cobra.Command, pattern string,
	change func(*inspect.Inspector, context.Context, string) (inspect.PauseChange, error),
) error {
	if !message.ValidPattern(pattern) {
		return fmt.Errorf("%w: target pattern %q: %w", errUsage, pattern, errPattern)
	}
	return a.withInspector(cmd, func(ctx context.Context, i *inspect.Inspector) error {
		c, err := change(i, ctx, pattern)
		if err != nil && !errors.Is(err, inspect.ErrUnconfirmed) {
			return fmt.Errorf("%s: %w", pattern, err)
		}
		a.showPauseChange(pattern, c)
		if err != nil {
			return fmt.Errorf("%s: the change was announced, but %w", pattern, err)
		}
		return nil
	})
}

func (a *app) showPauseChange(pattern string, c inspect.PauseChange) {
	if a.AsJSON(c) {
		return
	}
	for _, p := range c.Pauses {
		if p.Pattern != pattern {
			continue
		}
		state := "is paused"
		if p.State != pause.Paused {
			state = "is resumed: the waiting messages are delivered"
		}
		a.Printf("%s %s\n", pattern, state)
	}
	if c.NotStored != "" {
		fmt.Fprintf(a.Err, "the change is not stored yet; the instances will store it when possible: %s\n",
			text.Printable(c.NotStored, terminal.MaxCell))
	}
	if len(c.Confirmed) == 0 && len(c.Unconfirmed) == 0 {
		fmt.Fprintln(a.Err, "no broker runs; a broker that starts will apply the change")
		return
	}
	fmt.Fprintf(a.Err, "confirmed by %d of %s\n", len(c.Confirmed),
		terminal.Counted(len(c.Confirmed)+len(c.Unconfirmed), "instance"))
}

func (a *app) listPauses(ctx context.Context, i *inspect.Inspector) error {
	pauses, err := i.Pauses(ctx)
	if err != nil {
		return err
	}
	if a.AsJSON(struct {
		Paused []inspect.Pause `json:"paused"`
	}{pauses}) {
		return nil
	}
	if len(pauses) == 0 {
		a.Printf("no pattern is paused\n")
		return nil
	}
	t := a.Sheet([]terminal.Column{{Name: "target pattern", Min: 10}, {Name: "state"}, {Name: "since"},
		{Name: "waiting"}})
	for _, p := range pauses {
		state := string(p.State)
		if p.Unproven {
			state += ", unproven"
		}
		t.Add(p.Pattern, state, text.ShortMoment(p.Since), *p.Waiting)
	}
	t.Print()
	return nil
}

// printPaused prints the paused patterns, below a table.
func (a *app) printPaused(pauses []inspect.Pause) {
	for _, p := range pauses {
		state := "paused since " + text.ShortMoment(p.Since)
		if p.State != pause.Paused {
			state = "being resumed"
		}
		a.Printf("%s: %s\n", text.Printable(p.Pattern, terminal.MaxCell), state)
	}
}
