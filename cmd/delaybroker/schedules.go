package main

import "github.com/spf13/cobra"

func (a *app) schedulesCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "schedules",
		Short: "Named timers that recur: every so often, or by cron",
		Args:  noArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(a.schedulesImportCommand())
	return c
}
