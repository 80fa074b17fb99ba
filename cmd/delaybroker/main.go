// Command delaybroker delivers NATS messages later: what is published to delay.30m.orders.expire arrives on orders.expire
// thirty minutes afterwards. It is configured by environment variables; "delaybroker serve --help" lists them.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"delaybroker/broker"
	"delaybroker/levels/lane"
)

// A verb is what one word on the command line does. Args are those after the word.
type verb func(ctx context.Context, args []string, stdout, stderr io.Writer) error

var verbs = map[string]verb{
	"serve":   serve,
	"version": version,
}

const usage = `delaybroker delivers NATS messages later.

usage:
  delaybroker [serve]        run the broker until SIGINT or SIGTERM
  delaybroker serve --help   list the settings
  delaybroker version        print the versions of this program and of what it is made of

exit codes:
  0  stopped cleanly
  1  something failed; starting again may help
  2  wrong arguments or settings, or streams that do not fit them; starting again does not help
`

var (
	// errUsage is returned for words and arguments that do not exist.
	errUsage = errors.New("usage")
	// errConfig is returned for settings that cannot be used, with a line for each problem.
	errConfig = errors.New("configuration")
)

// logged is an error that the log has shown, so that main prints it no second time.
type logged struct{ error }

func (l logged) Unwrap() error { return l.error }

func main() {
	err := run(context.Background(), os.Args[1:], os.Stdout, os.Stderr)
	if _, shown := errors.AsType[logged](err); err != nil && !shown {
		fmt.Fprintln(os.Stderr, "delaybroker:", err)
	}
	os.Exit(exitCode(err))
}

// run finds the verb and runs it. It ends when the verb does, which for serve is when ctx ends.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) == 0 {
		return serve(ctx, nil, stdout, stderr)
	}
	if isHelp(args[0]) {
		_, err := io.WriteString(stdout, usage)
		return err
	}
	do, ok := verbs[args[0]]
	if !ok {
		return fmt.Errorf("%w: unknown word %q\n\n%s", errUsage, args[0], usage)
	}
	return do(ctx, args[1:], stdout, stderr)
}

func isHelp(arg string) bool { return arg == "-h" || arg == "--help" || arg == "help" }

// exitCode tells a supervisor whether starting again can help.
func exitCode(err error) int {
	if err == nil {
		return 0
	}
	for _, lasting := range []error{
		errUsage, errConfig, broker.ErrConfig, broker.ErrDrift, lane.ErrMissingStreams, lane.ErrForeignStream,
	} {
		if errors.Is(err, lasting) {
			return 2
		}
	}
	return 1
}
