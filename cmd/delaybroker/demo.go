package main

import (
	"github.com/spf13/cobra"

	"delaybroker/cmd/delaybroker/demo"
)

func (a *app) demoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "Show delays at work, with a server and a broker of its own, in ten seconds",
		Long: `Start a NATS server and a broker in a temporary directory, publish some delayed messages to a stream and to a
core subscriber, and show when they arrive. Nothing is left behind, and no setting or running server is touched.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			return demo.Run(ctx, &a.Printer, readBuild().name())
		},
	}
}
