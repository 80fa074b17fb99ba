package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"delaybroker/broker/inspect"
	"delaybroker/broker/text"
	"delaybroker/broker/timer/schedules"
	"delaybroker/cmd/delaybroker/terminal"
)

var errImportIncomplete = errors.New("some schedules were left in the stream, or are in both streams")

func (a *app) schedulesImportCommand() *cobra.Command {
	var stream string
	var dryRun bool
	c := &cobra.Command{
		Use:   "import --stream NAME",
		Short: "Take over the schedules of a nats-server stream",
		Long: `Take over the schedules of a nats-server stream (allow_msg_schedules) on the subjects of DELAY_SCHEDULES.

Each schedule is stored in the broker's stream of timers, with the time of its next firing, and then deleted from the
server's stream. So each firing comes from the broker or from the server, not from both. A schedule that fires within
five seconds is left, and fires from the server: run the command again. But a schedule with an interval of ten seconds
or less is taken, and loses its rounds of the next five seconds.

taken  the schedule is now in the broker's stream
left   the schedule is unchanged; the table has the reason
ended  a client has cancelled the schedule in the broker, or replaced it by one that has ended, so the command deleted
       it from the server's stream
both   the schedule may be in both streams, and the table has the reason: run the command again before it fires

Before the import, remove the subjects from the server's stream, so that clients set no more schedules there, and start
the brokers with DELAY_SCHEDULES. The remaining schedules of that stream continue to fire from the server.

exit codes: 0 done, 1 failed, or some schedules were left or are in both streams, 2 bad arguments or settings`,
		Example: "  delaybroker schedules import --stream PLANS --dry-run",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if stream == "" {
				return fmt.Errorf("%w: --stream is missing: want the stream with the schedules", errUsage)
			}
			return a.withInspector(cmd, func(ctx context.Context, i *inspect.Inspector) error {
				return a.importSchedules(ctx, i, stream, dryRun)
			})
		},
	}
	c.Flags().StringVar(&stream, "stream", "", "the stream with the schedules")
	c.Flags().BoolVar(&dryRun, "dry-run", false, "only show the outcome, and change nothing")
	return c
}

func (a *app) importSchedules(ctx context.Context, i *inspect.Inspector, stream string, dryRun bool) error {
	if err := i.ReadKeys(ctx); err != nil {
		return err
	}
	takeover := i.TakeOver(dryRun)
	if len(takeover.Rules) == 0 {
		return fmt.Errorf("%w: DELAY_SCHEDULES is missing: set it to the brokers' value", errUsage)
	}
	ctx, cancel := i.WithRefusal(ctx)
	defer cancel()
	var results []schedules.Result
	err := takeover.MoveAll(ctx, stream, func(t schedules.Result) error {
		results = append(results, t)
		return ctx.Err()
	})
	a.showTaken(results, dryRun)
	if err != nil {
		return inspect.Cause(ctx, err)
	}
	for _, t := range results {
		if t.Outcome != schedules.Taken && t.Outcome != schedules.Ended {
			return reportedError{errImportIncomplete}
		}
	}
	return nil
}

func (a *app) showTaken(results []schedules.Result, dryRun bool) {
	if a.AsJSON(results) {
		return
	}
	count := make(map[schedules.Outcome]int)
	table := a.Sheet([]terminal.Column{
		{Name: "subject", Min: 10}, {Name: "target", Min: 10}, {Name: "when", Min: 10}, {Name: "due"}, {Name: "result"},
		{Name: "because", Min: 12, Wrap: true},
	})
	for _, r := range results {
		count[r.Outcome]++
		table.Add(text.Printable(r.Subject, 100), text.Printable(r.Target, 100), text.Printable(r.Pattern, 60),
			text.Moment(r.Due), string(r.Outcome), text.Printable(r.Why, 300))
	}
	if len(results) > 0 {
		table.Print()
	}
	state := "taken over"
	if dryRun {
		state = "would be taken over"
	}
	ended := ""
	if n := count[schedules.Ended]; n > 0 {
		ended = fmt.Sprintf(", %d ended", n)
	}
	a.Printf("%d schedules: %d %s, %d left, %d in both places%s\n", len(results),
		count[schedules.Taken], state, count[schedules.Kept], count[schedules.Doubled], ended)
}
