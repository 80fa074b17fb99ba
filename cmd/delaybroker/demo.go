package main

import (
	"github.com/spf13/cobra"

	"delaybroker/cmd/delaybroker/demo"
)

func (a *app) demoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "Show delayed messages with a temporary server and broker, in ten seconds",
		Long: `Start a NATS server and a broker in a temporary directory, publish some delayed messages to a stream and
to a core subscriber, and show their arrival. At the end, demo removes the server and the directory. It changes no
setting and no running server.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := withInterrupt(cmd.Context())
			defer stop()
			return demo.Run(ctx, &a.Printer, readBuild().name())
		},
	}
}
