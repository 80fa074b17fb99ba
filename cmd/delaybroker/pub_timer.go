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
type timerOptions struct{ key, condition, word string }

// wish returns the change that the flags request, without the body.
func (o pubOptions) wish(target string, header nats.Header) (w store.Change, err error) {
	t := o.timer
	switch {
	case t.key == "":
		return w, fmt.Errorf("%w: --if and --word need --key", errUsage)
	case o.count != 1:
		return w, fmt.Errorf("%w: --key excludes --count: a timer replaces the previous one with its key", errUsage)
	}
	w = store.Change{
		Request: timer.Request{Verb: timer.Set, ID: t.word, Conditional: t.condition != ""},
		Key:     t.key, Target: target, Header: message.Header(header),
	}
	if t.condition != "" && t.condition != "absent" {
		if w.Generation, err = strconv.ParseUint(t.condition, 10, 63); err != nil || w.Generation == 0 {
			return w, fmt.Errorf("%w: --if %q: want absent, or a generation", errUsage, t.condition)
		}
	}
	switch {
	case o.when.level != "":
		return w, fmt.Errorf("%w: --key needs --in or --at: a timer has no level", errUsage)
	case o.when.in != "":
		if _, err := levels.ParseDuration(o.when.in); err != nil {
			return w, fmt.Errorf("%w: --in: %w", errUsage, err)
		}
		header.Set(message.HeaderFor, o.when.in)
	default:
		at, err := zoned("--at", o.when.at)
		if err != nil {
			return w, err
		}
		header.Set(message.HeaderUntil, at.UTC().Format(time.RFC3339Nano))
	}
	return w, nil
}

// pubTimer sets a named timer.
func (a *app) pubTimer(cmd *cobra.Command, args []string, o pubOptions, header nats.Header) error {
	w, err := o.wish(args[0], header)
	if err != nil {
		return err
	}
	if w.Body, err = readBody(cmd.InOrStdin(), args[1:]); err != nil {
		return err
	}
	return a.oneTimer(cmd, w)
}
