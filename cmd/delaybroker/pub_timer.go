package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"delaybroker/broker/message"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/store"
	"delaybroker/levels"
)

// timerOptions are the flags of pub for a named timer.
type timerOptions struct{ key, condition, requestID string }

// change returns the request that sets the timer, without the body. It also writes the time of delivery into header.
func (o pubOptions) change(target string, header nats.Header) (change store.Change, err error) {
	t := o.timer
	switch {
	case t.key == "":
		return change, fmt.Errorf("%w: --if and --word need --key", errUsage)
	case o.count != 1:
		return change, fmt.Errorf("%w: --key excludes --count: a timer replaces the previous one with its key", errUsage)
	}
	change = store.Change{
		Request: timer.Request{Verb: timer.Set, ID: t.requestID, Conditional: t.condition != ""},
		Key:     t.key, Target: target, Header: message.Header(header),
	}
	if t.condition != "" && t.condition != "absent" {
		if change.Generation, err = strconv.ParseUint(t.condition, 10, 63); err != nil || change.Generation == 0 {
			return change, fmt.Errorf("%w: --if %q: want absent, or a generation", errUsage, t.condition)
		}
	}
	switch {
	case o.when.level != "":
		return change, fmt.Errorf("%w: --key needs --in or --at: a timer has no level", errUsage)
	case o.when.in != "":
		if _, err := levels.ParseDuration(o.when.in); err != nil {
			return change, fmt.Errorf("%w: --in: %w", errUsage, err)
		}
		header.Set(message.HeaderFor, o.when.in)
	default:
		at, err := parseTime("--at", o.when.at)
		if err != nil {
			return change, err
		}
		header.Set(message.HeaderUntil, at.UTC().Format(time.RFC3339Nano))
	}
	return change, nil
}

func (a *app) pubTimer(cmd *cobra.Command, args []string, o pubOptions, header nats.Header) error {
	change, err := o.change(args[0], header)
	if err != nil {
		return err
	}
	if change.Body, err = readBody(cmd.InOrStdin(), args[1:]); err != nil {
		return err
	}
	return a.executeChange(cmd, change)
}
