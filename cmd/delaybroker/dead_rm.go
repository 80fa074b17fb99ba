package main

import (
	"context"

	"github.com/spf13/cobra"
)

func (a *app) deadRemoveCommand() *cobra.Command {
	var choice letterChoice
	var dryRun bool
	c := &cobra.Command{
		Use:   "rm",
		Short: "Remove dead letters permanently",
		Long: `Remove dead letters permanently: their messages will never be delivered. Unlike a purge, it does not remove
letters that are stored while it runs.

exit codes: 0 all selected letters were removed, 1 failed, 2 bad arguments or settings`,
		Example: `  delaybroker dead rm --code bad_time --until 7d --dry-run
  delaybroker dead rm --all`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := choice.check(); err != nil {
				return err
			}
			return a.withLetters(cmd.Context(), choice, func(ctx context.Context, d deadLetters) error {
				return a.runLetters(ctx, letterRun{deadLetters: d, LetterWork: d.Removing(d.filter, dryRun), dryRun: dryRun})
			})
		},
	}
	choice.addFlags(c)
	c.Flags().BoolVar(&choice.all, "all", false, "all dead letters")
	c.Flags().BoolVar(&dryRun, "dry-run", false, "only show the outcome, and change nothing")
	return c
}
