package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"delaybroker/cmd/delaybroker/terminal"
)

// An app is shared by all commands.
type app struct {
	terminal.Printer
	helped error // an error if flags or arguments accompany a request for help; nil otherwise
	to     connection
}

// about is the head of the help. Supervisors need the exit codes; cobra lists the commands.
const about = `Deliver NATS messages later: what is published to delay.30m.orders.expire arrives on orders.expire thirty
minutes afterwards. Without a command, delaybroker serves.

All commands are configured by the environment variables that "delaybroker serve --help" lists. Those that connect take
NATS_URL (127.0.0.1:4222 unless set) or NATS_CONTEXT, and the credentials beside them. --server, --context and --creds
win over these.

exit codes: 0 done, 1 failed, 2 bad arguments or settings`

// run finds the command and runs it. It returns when the command ends; serve ends with ctx.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	a := &app{Printer: terminal.Printer{Out: stdout, Err: stderr}}
	root := a.rootCommand()
	root.SetArgs(append([]string{}, args...)) // for nil, cobra takes those of the process
	return a.execute(ctx, root)
}

func (a *app) execute(ctx context.Context, root *cobra.Command) error {
	return cmp.Or(root.ExecuteContext(ctx), a.helped, a.Failure())
}

// helpAlone makes help together with flags or arguments a usage error: these would have no effect, and -h may have been
// meant as an argument.
func (a *app) helpAlone(root *cobra.Command) {
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		help(cmd, args)
		asks := len(args) > 0 && args[len(args)-1] == "--help" // as a person types it after other arguments
		if f := cmd.Flags(); f.Changed("help") && (f.NArg() > 0 && !asks || f.NFlag() > 1) {
			a.helped = fmt.Errorf("%w: help was asked for, and nothing was done: leave out the rest, or write -- before "+
				"an argument that begins with -", errUsage)
		}
	})
}

// rootCommand is serve if no command is given.
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

		PersistentPreRunE:          func(*cobra.Command, []string) error { return a.to.export() },
		SuggestionsMinimumDistance: 2,
	}
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	root.PersistentFlags().BoolVar(&a.JSON, "json", false, "print JSON")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return fmt.Errorf("%w: %w", errUsage, err) })
	root.AddCommand(a.demoCommand(), a.healthcheckCommand(), a.versionCommand(), a.sizeCommand())
	root.AddCommand(a.to.on(a.serveCommand(), a.pubCommand(), a.subCommand(), a.timersCommand(), a.schedulesCommand())...)
	// The operators' commands read the broker's settings, so that they judge by the same configuration.
	root.AddCommand(a.to.on(
		a.levelsCommand(), a.aheadCommand(), a.pendingCommand(), a.retryingCommand(), a.whereCommand(), a.journalCommand(),
		a.deadCommand(), a.pauseCommand(), a.resumeCommand(), a.streamsCommand(), a.provisionCommand(), a.doctorCommand(),
		a.benchCommand(), a.benchPartCommand(),
	)...)
	a.to.flags(root.Flags()) // for serve, if the command is left out
	a.helpAlone(root)
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

// argumentsBetween requires the number of arguments that the usage line in the help gives.
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

// interruptible ends ctx at the first signal. Serve handles signals itself.
func interruptible(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
}
