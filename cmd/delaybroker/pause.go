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
		Use:   "pause [target pattern]",
		Short: "Pause the targets of a pattern, or list what is paused",
		Long: `Pause the targets of a pattern: what becomes due for them waits in the streams, whoever restarts, until the
pattern is resumed. No attempts are counted. When pause returns without an error, every instance that runs acts by it,
and nothing is sent to these targets any more.

Patterns may overlap: a target is paused as long as one of them matches it. Delay-Expires counts as always, and is
looked at when the target is resumed.

Without a pattern: what is paused, since when, and how many messages wait.

exit codes: 0 done, 1 failed, or instances have not confirmed the change, 2 bad arguments or settings`,
		Example: `  delaybroker pause 'orders.>'
  delaybroker pause --json`,
		Args: argumentsBetween(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.inspect(cmd, a.listPauses)
			}
			return a.changePauses(cmd, args[0], (*inspect.Inspector).Pause)
		},
	}
}

func (a *app) resumeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "resume <target pattern>",
		Short: "Resume the targets of a pattern that was paused",
		Long: `Resume the targets of a pattern: what waits for them goes out in the order of its due times, as fast as the
targets and DELAY_RATE let it, and what becomes due meanwhile goes out behind it.

A pattern is resumed as it was paused, and not in parts. What another pattern that is paused matches too goes on
waiting, for that one.

exit codes: 0 done, 1 failed, or not paused, or instances have not confirmed the change, 2 bad arguments or settings`,
		Example: `  delaybroker resume 'orders.>'`,
		Args:    argumentsBetween(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.changePauses(cmd, args[0], (*inspect.Inspector).Resume)
		},
	}
}

// changePauses pauses or resumes a pattern.
func (a *app) changePauses(
	cmd *cobra.Command, pattern string,
	change func(*inspect.Inspector, context.Context, string) (inspect.PauseChange, error),
) error {
	if !message.ValidPattern(pattern) {
		return fmt.Errorf("%w: target pattern %q: tokens separated by dots; * for one token, > for the rest",
			errUsage, pattern)
	}
	return a.inspect(cmd, func(ctx context.Context, i *inspect.Inspector) error {
		c, err := change(i, ctx, pattern)
		if err != nil && !errors.Is(err, inspect.ErrUnconfirmed) {
			return fmt.Errorf("%s: %w", pattern, err)
		}
		a.showPauseChange(pattern, c)
		if err != nil {
			return fmt.Errorf("%s: it is stored, but %w; they may not have heard of it, or be down", pattern, err)
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
		said := "is paused"
		if p.State != pause.Paused {
			said = "is resumed: what waited goes out"
		}
		a.Printf("%s %s\n", pattern, said)
	}
	if c.Stored != "" {
		fmt.Fprintf(a.Err, "not stored yet, and done again by the instances when it can be: %s\n",
			text.Printable(c.Stored, terminal.MaxCell))
	}
	if len(c.Told) == 0 && len(c.Untold) == 0 {
		fmt.Fprintln(a.Err, "no broker runs: those that start go by it")
		return
	}
	fmt.Fprintf(a.Err, "%d of %s act by it\n", len(c.Told), terminal.Counted(len(c.Told)+len(c.Untold), "instance"))
}

func (a *app) listPauses(ctx context.Context, i *inspect.Inspector) error {
	all, err := i.Pauses(ctx)
	if err != nil {
		return err
	}
	if a.AsJSON(struct {
		Paused []inspect.Pause `json:"paused"`
	}{all}) {
		return nil
	}
	if len(all) == 0 {
		a.Printf("nothing is paused\n")
		return nil
	}
	t := a.Sheet([]terminal.Column{{Name: "target pattern", Min: 10}, {Name: "state"}, {Name: "since"},
		{Name: "waiting"}})
	for _, p := range all {
		state := string(p.State)
		if p.Unproven {
			state += ", unproven"
		}
		t.Add(p.Pattern, state, text.Second(p.Since), *p.Waiting)
	}
	t.Print()
	return nil
}

// sayPaused prints the paused targets below a table.
func (a *app) sayPaused(all []inspect.Pause) {
	for _, p := range all {
		said := "paused since " + text.Second(p.Since)
		if p.State != pause.Paused {
			said = "being resumed"
		}
		a.Printf("%s: %s\n", text.Printable(p.Pattern, terminal.MaxCell), said)
	}
}
