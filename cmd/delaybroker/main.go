// Command delaybroker delivers NATS messages later: a message to delay.30m.orders.expire arrives on orders.expire
// thirty minutes afterwards. "delaybroker --help" lists the commands, and "delaybroker serve --help" the settings.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	_ "time/tzdata" // for machines without a time zone database

	"delaybroker/broker"
	"delaybroker/broker/streams"
	"delaybroker/broker/streams/provision"
	"delaybroker/broker/text"
	"delaybroker/cmd/delaybroker/links"
	"delaybroker/cmd/delaybroker/settings"
	"delaybroker/cmd/delaybroker/terminal"
)

// errUsage is returned for invalid commands, flags and arguments.
var errUsage = errors.New("usage")

// A reportedError is an error that is already in the log or in the output. main does not print it again.
type reportedError struct{ error }

func (e reportedError) Unwrap() error { return e.error }

func main() {
	err := run(context.Background(), os.Args[1:], os.Stdout, os.Stderr)
	if _, isReported := errors.AsType[reportedError](err); err != nil && !isReported {
		for line := range strings.SplitSeq("delaybroker: "+sentenceOf(err), "\n") {
			fmt.Fprintln(os.Stderr, text.Printable(line, 16*terminal.MaxCell)) // the error may quote untrusted text
		}
	}
	os.Exit(exitCode(err))
}

// sentenceOf returns the text of an error for a person, without errUsage, which only determines the exit code.
func sentenceOf(err error) string { return strings.ReplaceAll(err.Error(), errUsage.Error()+": ", "") }

// exitCode returns the exit code of the process. Code 2 tells a supervisor that a restart cannot help.
func exitCode(err error) int {
	if err == nil {
		return 0
	}
	if outcome, ok := errors.AsType[interface {
		error
		Exit() int
	}](err); ok {
		return outcome.Exit()
	}
	for _, permanent := range []error{
		errUsage, settings.ErrConfig, errCritical,
		broker.ErrConfig, broker.ErrDrift, streams.ErrMissingStreams, streams.ErrForeignStream,
		streams.ErrServerTooOld, provision.ErrFit, links.ErrConnections,
	} {
		if errors.Is(err, permanent) {
			return 2
		}
	}
	return 1
}
