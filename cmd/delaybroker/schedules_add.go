package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"delaybroker/broker/message"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/store"
)

// addOptions are the flags of add.
type addOptions struct {
	table   tableFlags
	target  string
	headers []string
	replace bool
}

func (a *app) schedulesAddCommand() *cobra.Command {
	var o addOptions
	c := &cobra.Command{
		Use:   "add NAME --target TARGET (--every DURATION | --cron EXPRESSION [--tz ZONE]) [BODY]",
		Short: "Add a schedule",
		Long: `Add a schedule: a message that is delivered to TARGET repeatedly. NAME is the key of its timer. The body is
read from stdin if BODY is -, or if BODY is missing and stdin is not a terminal.

If a schedule with that name and target exists, nothing is changed, and the exit code is 5. With --replace, the schedule
is replaced, and its rounds count from 1 again.

` + outcomeCodes,
		Example: `  delaybroker schedules add nightly --cron '0 3 * * *' --tz Europe/Berlin --target reports.run '{"id":1}'
  delaybroker schedules add pulse --every 15m --target reports.pulse --missed skip --jitter 1m
  delaybroker schedules add trial --every 1d --first 2026-12-24T18:00:00Z --rounds 3 --target mail.send`,
		Args: argumentsBetween(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error { return a.addSchedule(cmd, args, o) },
	}
	o.table.addFlags(c)
	f := c.Flags()
	f.StringVar(&o.target, "target", "", "the subject to deliver to")
	f.StringArrayVarP(&o.headers, "header", "H", nil, "header, as in 'Key: value'; may be repeated")
	f.BoolVar(&o.replace, "replace", false, "replace an existing schedule")
	return c
}

func (a *app) addSchedule(cmd *cobra.Command, args []string, o addOptions) error {
	if o.target == "" {
		return fmt.Errorf("%w: --target is missing: want the subject to deliver to", errUsage)
	}
	header, err := parseHeaders(o.headers)
	if err != nil {
		return err
	}
	if err := o.table.addTo(header); err != nil {
		return err
	}
	change := store.Change{
		Request: timer.Request{Verb: timer.Set, Conditional: !o.replace}, Key: args[0], Target: o.target,
		Header: message.Header(header),
	}
	if change.Body, err = readBody(cmd.InOrStdin(), args[1:]); err != nil {
		return err
	}
	return a.withTimers(cmd.Context(), func(ctx context.Context, timers *store.Timers) error {
		answer, err := changeTimer(ctx, timers, change)
		if err == nil && answer.Outcome == timer.Unknown && mayNotRead(ctx, timers) {
			answer.Why = unknownSetReason(change)
		}
		if err == nil && answer.Outcome == timer.Conflict && !o.replace {
			answer, err = replaceEnded(ctx, timers, change, answer)
		}
		if err != nil {
			return err
		}
		return a.showTimer(answer)
	})
}

// replaceEnded sets the schedule if the conflict is with an ended timer, whose last entry stays stored for a time.
// Otherwise it returns the conflict.
func replaceEnded(
	ctx context.Context, timers *store.Timers, change store.Change, conflict store.Answer,
) (store.Answer, error) {
	s, err := readTimer(ctx, timers, change.Key, change.Target)
	if err != nil || !s.Ended() {
		return conflict, err
	}
	change.Generation = s.Sequence
	return changeTimer(ctx, timers, change)
}
