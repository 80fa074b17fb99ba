package main

import (
	"context"
	"fmt"
	"io"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"delaybroker/cmd/terminal"
)

// An app is what all verbs share.
type app struct{ terminal.Printer }

// about is the head of the help. Who starts us needs the codes; cobra lists the verbs.
const about = `Deliver NATS messages later: what is published to delay.30m.orders.expire arrives on orders.expire thirty
minutes afterwards. Without a verb, delaybroker serves.

All verbs are configured by the environment variables that "delaybroker serve --help" lists. Those that talk to a broker
take NATS_URL (127.0.0.1:4222 unless set) or NATS_CONTEXT, and the credentials beside them.

exit codes: 0 done, 1 failed, 2 wrong words or settings`

// run finds the verb and runs it. It ends when the verb does, which for serve is when ctx ends.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	a := &app{terminal.Printer{Out: stdout, Err: stderr}}
	root := a.rootCommand()
	root.SetArgs(append([]string{}, args...)) // for nil, cobra takes those of the process
	return root.ExecuteContext(ctx)
}

// rootCommand is serve when no verb is given.
func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "delaybroker",
		Short:         "Deliver NATS messages later",
		Long:          about,
		Args:          noArguments,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          a.serve,
		Version:       readBuild().name(),

		SuggestionsMinimumDistance: 2,
	}
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	root.PersistentFlags().BoolVar(&a.JSON, "json", false, "print JSON")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return fmt.Errorf("%w: %w", errUsage, err) })
	root.AddCommand(
		a.serveCommand(), a.demoCommand(), a.pubCommand(), a.subCommand(), a.timersCommand(), a.schedulesCommand(),
		a.healthcheckCommand(),
		a.versionCommand(),
	)
	// The verbs of those who run the broker go by its own settings, so that they judge by what it goes by.
	root.AddCommand(
		a.levelsCommand(), a.aheadCommand(), a.pendingCommand(), a.retryingCommand(), a.whereCommand(), a.journalCommand(),
		a.deadCommand(), a.pauseCommand(), a.resumeCommand(), a.streamsCommand(), a.provisionCommand(), a.doctorCommand(),
		a.benchCommand(), a.benchPartCommand(),
	)
	root.SetVersionTemplate("delaybroker {{.Version}}\n")
	return root
}

func noArguments(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case cmd.HasParent():
		return fmt.Errorf("%w: %s takes no arguments, got %q; see %s --help",
			errUsage, cmd.Name(), args, cmd.CommandPath())
	}
	var hint string
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = " (" + strings.Join(near, " or ") + "?)"
	}
	return fmt.Errorf("%w: unknown word %q%s; see %s --help", errUsage, args[0], hint, cmd.CommandPath())
}

// argumentsBetween is what a verb's own line in its help says too.
func argumentsBetween(low, high int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < low || len(args) > high {
			return fmt.Errorf("%w: want %s", errUsage, cmd.UseLine())
		}
		return nil
	}
}

// completes offers the values that a flag may have to the completion of a shell.
func completes(cmd *cobra.Command, flag string, values ...string) {
	fixed := cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
	if err := cmd.RegisterFlagCompletionFunc(flag, fixed); err != nil {
		panic("bug: " + err.Error())
	}
}

// interruptible ends ctx at the first signal. Serve has its own way.
func interruptible(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
}
