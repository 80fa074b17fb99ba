package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/operation"
	"delaybroker/broker/timer/store"
)

// timersTimeout bounds the requests to JetStream about one timer, with their retries, and each request to a broker.
const timersTimeout = 5 * time.Second

func (a *app) timersCommand() *cobra.Command {
	return a.operations(&cobra.Command{
		Use:   "timers",
		Short: "Show, cancel, move and fire named timers",
		Long: `Show, cancel, move and fire named timers. The commands use JetStream directly, and work even if no broker runs.
Only a user who may not read the stream of timers needs a broker: the command then asks it.

A timer is identified by a key and a target. Each set, each move and each round of a schedule gives the timer a new
generation: the sequence of the message that the stream stored. Of the firing and all changes of one generation, exactly
one succeeds.

A schedule in nats-server's format (DELAY_SCHEDULES) is a timer with the key _schedule.<subject of the schedule>. Before
a key that begins with -, write --.

` + operation.OutcomeCodes,
	})
}

// errMayNotRead is returned if the user may not send requests about the stream of timers to JetStream.
var errMayNotRead = errors.New("this user may not read the stream of timers")

// mayNotRead reports whether ctx, from [inspect.Session.WithRefusal], ended because the server refused a request to the
// JetStream API. A refused publish on a timer's own subject does not count.
func mayNotRead(ctx context.Context, timers *store.Timers) bool {
	subject, _ := jsapi.RefusedSubject(context.Cause(ctx))
	return strings.HasPrefix(subject, timers.API.API+".")
}
