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

	"delaybroker/broker/operation"
	"delaybroker/cmd/delaybroker/terminal"
)

// An app has the state that its commands share.
type app struct {
	terminal.Printer
	helpErr    error // an error if flags or arguments accompany a request for help; nil otherwise
	connection connection
}

// about is the first part of the help, before Cobra's list of commands.
const about = `Deliver NATS messages later: a message to delay.30m.orders.expire arrives on orders.expire thirty minutes
afterwards. Without a command, delaybroker runs serve.

Environment variables have the settings of the broker and of the commands: "delaybroker serve --help" lists them. A
command that connects uses NATS_URL (default 127.0.0.1:4222), with NATS_CREDS or other credentials, or NATS_CONTEXT. The
flags --server, --context and --creds replace these variables.

target       the subject to which the broker delivers a message
lane         a stream in which messages wait: a level, the intake, a retry lane, the pauses or the timers
level        a lane in which each message waits equally long, such as 30m
intake       the lane for delays without a level
retry lane   a lane for messages that their target has refused, until the next attempt
timer        a message with a key, which can be replaced, moved and cancelled until it fires
dead letter  a message that the broker cannot deliver, kept with the reason
instance     a running broker
Delay-Id     the id of a message: the stream that accepted it, the sequence there, and the time

exit codes: 0 done, 1 failed, 2 bad arguments, settings or streams: another try would fail, too`

// run runs the command that args name.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	a := &app{Printer: terminal.Printer{Out: stdout, Err: stderr}}
	root := a.rootCommand()
	root.SetArgs(append([]string{}, args...)) // for nil, cobra would use the arguments of the process
	return a.execute(ctx, root)
}

func (a *app) execute(ctx context.Context, root *cobra.Command) error {
	return cmp.Or(root.ExecuteContext(ctx), a.helpErr, a.Failure())
}

// checkHelp makes a request for help a usage error if flags or arguments accompany it. They would have no effect, and
// -h may have been meant as an argument.
func (a *app) checkHelp(root *cobra.Command) {
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		help(cmd, args)
		helpIsLast := len(args) > 0 && args[len(args)-1] == "--help" // as in "bench timers --help"
		if f := cmd.Flags(); f.Changed("help") && (f.NArg() > 0 && !helpIsLast || f.NFlag() > 1) {
			a.helpErr = fmt.Errorf("%w: the command did not run, since --help excludes other arguments: remove --help, "+
				"or write -- before an argument that begins with -", errUsage)
		}
	})
}

// rootCommand returns the root of the commands, which runs serve.
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

		PersistentPreRunE: func(*cobra.Command, []string) error { return a.connection.export() },
	}
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	root.PersistentFlags().BoolVar(&a.JSON, "json", false, "print JSON")
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(a.demoCommand(), a.healthcheckCommand(), a.versionCommand(), a.sizeCommand())
	root.AddCommand(a.connection.addTo(
		a.serveCommand(), a.pubCommand(), a.subCommand(), a.timersCommand(), a.schedulesCommand(),
	)...)
	// for operators
	root.AddCommand(a.connection.addTo(
		a.levelsCommand(), a.pendingCommand(),
		a.deadCommand(), a.streamsCommand(), a.provisionCommand(), a.doctorCommand(),
		a.benchCommand(),
	)...)
	for _, o := range operation.All {
		if !strings.Contains(o.Name, " ") && !o.Hidden && o.Name != "levels" {
			root.AddCommand(a.connection.addTo(a.doorOf(o.Name).command())...)
		}
	}
	a.connection.addFlags(root.Flags()) // for serve, which needs no command name
	group(root)
	a.checkHelp(root)
	root.SetVersionTemplate("delaybroker {{.Version}}\n")
	return root
}

func noArguments(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case !cmd.HasAvailableSubCommands():
		return fmt.Errorf("%w: %s takes no arguments, got %q; see %s --help",
			errUsage, cmd.Name(), args, cmd.CommandPath())
	}
	cmd.SuggestionsMinimumDistance = maxDistance
	var hint string
	if suggestions := cmd.SuggestionsFor(args[0]); len(suggestions) > 0 {
		hint = " (" + strings.Join(suggestions, " or ") + "?)"
	}
	return fmt.Errorf("%w: unknown command %q%s; see %s --help", errUsage, args[0], hint, cmd.CommandPath())
}

// maxDistance is the maximum number of letters by which a misspelt command or flag differs from the one suggested.
const maxDistance = 2

// argumentsBetween returns a check that requires at least low and at most high arguments.
func argumentsBetween(low, high int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < low || len(args) > high {
			return fmt.Errorf("%w: want %s", errUsage, cmd.UseLine())
		}
		return nil
	}
}

// addCompletion offers a flag's values to the shell's completion.
func addCompletion(cmd *cobra.Command, flag string, values ...string) {
	fixed := cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
	if err := cmd.RegisterFlagCompletionFunc(flag, fixed); err != nil {
		panic("bug: " + err.Error())
	}
}

// withInterrupt returns a context that ends at the first SIGINT or SIGTERM. The command serve handles signals itself.
func withInterrupt(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
}
