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

Each schedule is stored in the broker's stream of timers, with the time of its next firing, and then deleted from that
stream. So it fires once, from the broker or from the server. A schedule that fires within five seconds is left, and
fires from the server: run the command again. A schedule with an interval of ten seconds or less loses the rounds of
these five seconds.

taken  it is now in the broker's stream
left   it is unchanged; the table has the reason
ended  its client has cancelled or replaced it in the broker, which still has that entry, so it was deleted
both   it is in both streams, since the command failed in between: run it again before the schedule fires

Before the import, remove the subjects from that stream, so that clients set no more schedules there, and start the
brokers with DELAY_SCHEDULES. The remaining schedules of the stream continue to fire from the server.

exit codes: 0 all, 1 failed, or some were left, 2 bad arguments or settings`,
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
	take := i.TakeOver(dryRun)
	if len(take.Rules) == 0 {
		return fmt.Errorf("%w: DELAY_SCHEDULES is missing: set it to the brokers' value", errUsage)
	}
	ctx, cancel := i.WithRefusal(ctx)
	defer cancel()
	var all []schedules.Result
	err := take.Stream(ctx, stream, func(t schedules.Result) error {
		all = append(all, t)
		return ctx.Err()
	})
	a.showTaken(all, dryRun)
	if err != nil {
		return inspect.Cause(ctx, err)
	}
	for _, t := range all {
		if t.Fate != schedules.Taken && t.Fate != schedules.Ended {
			return reportedError{errImportIncomplete}
		}
	}
	return nil
}

func (a *app) showTaken(all []schedules.Result, dryRun bool) {
	if a.AsJSON(all) {
		return
	}
	count := make(map[schedules.Fate]int)
	t := a.Sheet([]terminal.Column{
		{Name: "subject", Min: 10}, {Name: "target", Min: 10}, {Name: "when", Min: 10}, {Name: "due"}, {Name: "result"},
		{Name: "because", Min: 12, Wrap: true},
	})
	for _, took := range all {
		count[took.Fate]++
		t.Add(text.Printable(took.Subject, 100), text.Printable(took.Target, 100), text.Printable(took.When, 60),
			text.Moment(took.Due), string(took.Fate), text.Printable(took.Why, 300))
	}
	if len(all) > 0 {
		t.Print()
	}
	did := "taken over"
	if dryRun {
		did = "would be taken over"
	}
	ended := ""
	if n := count[schedules.Ended]; n > 0 {
		ended = fmt.Sprintf(", %d ended", n)
	}
	a.Printf("%d schedules: %d %s, %d left, %d in both places%s\n", len(all),
		count[schedules.Taken], did, count[schedules.Left], count[schedules.Both], ended)
}
