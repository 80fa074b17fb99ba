package main

import (
	"github.com/spf13/cobra"

	"delaybroker/cmd/delaybroker/demo"
)

func (a *app) demoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "Show delayed messages with a temporary server and broker, in ten seconds",
		Long: `Start a NATS server and a broker with their data in a temporary directory, publish seven delayed messages to a
stream and to a plain subscriber, and show their arrival. At the end, demo stops the server and the broker, and removes
the directory.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := withInterrupt(cmd.Context())
			defer stop()
			return demo.Run(ctx, &a.Printer, readBuild().name())
		},
	}
}
