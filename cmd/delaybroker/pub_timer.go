package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"delaybroker/broker/message"
	"delaybroker/broker/text"
)

// timerOptions are the flags of pub for a named timer.
type timerOptions struct{ key, condition, requestID string }

// pubTimer sets a named timer, by the operation "timers set".
func (a *app) pubTimer(cmd *cobra.Command, args []string, o pubOptions) error {
	t := o.timer
	switch {
	case t.key == "":
		return fmt.Errorf("%w: --if and --word need --key", errUsage)
	case o.count != 1:
		return fmt.Errorf("%w: --key excludes --count: a timer replaces the previous one with its key", errUsage)
	case o.when.level != "":
		return fmt.Errorf("%w: --key needs --in or --at: a timer has no level", errUsage)
	}
	var headers []string
	for name, values := range o.header {
		for _, value := range values {
			headers = append(headers, name+": "+value)
		}
	}
	if o.when.in != "" {
		headers = append(headers, message.HeaderFor+": "+o.when.in)
	} else {
		headers = append(headers, message.HeaderUntil+": "+text.Moment(o.when.at))
	}
	w := a.doorOf("timers set")
	values := map[string][]string{
		"key": {t.key}, "target": args[:1], "if": {t.condition}, "word": {t.requestID}, "header": headers,
	}
	if err := w.use.SetValues(values); err != nil {
		return usageOf(err)
	}
	body, err := readBody(cmd.InOrStdin(), args[1:])
	if err != nil {
		return err
	}
	if err := w.use.Param("body").Set(string(body)); err != nil {
		return err
	}
	return w.connect(cmd.Context())
}
