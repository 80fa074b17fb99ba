package main

import (
	"github.com/spf13/cobra"

	"delaybroker/broker/operation"
)

func (a *app) schedulesCommand() *cobra.Command {
	c := a.operations(&cobra.Command{
		Use:   "schedules",
		Short: "Manage recurring named timers",
		Long: `Manage recurring named timers, with an interval or a cron expression in a time zone. The commands use JetStream
directly, and work even if no broker runs. For a user who may not read the stream of timers, some commands ask a broker.

A schedule is a timer: its NAME is the timer's key. If several targets have a schedule with one name, TARGET selects
one. A schedule in nats-server's format (DELAY_SCHEDULES) has the NAME _schedule.<subject of the schedule>.

` + operation.OutcomeCodes,
	})
	c.AddCommand(a.schedulesApplyCommand())
	return c
}
