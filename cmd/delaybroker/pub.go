package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"delaybroker/broker/inspect"
	"delaybroker/broker/message"
	"delaybroker/broker/operation"
	"delaybroker/broker/text"
	"delaybroker/cmd/delaybroker/publisher"
	"delaybroker/cmd/delaybroker/settings"
	"delaybroker/cmd/delaybroker/terminal"
	"delaybroker/levels"
)

const maxCount = 1_000_000

// pubOptions are the flags of pub.
type pubOptions struct {
	when   deliveryTime
	header nats.Header
	count  int
	timer  timerOptions
}

func (a *app) pubCommand() *cobra.Command {
	o := pubOptions{header: nats.Header{}}
	c := &cobra.Command{
		Use:   "pub TARGET [BODY] (--in DURATION | --at TIME | --level LEVEL) [--key KEY]",
		Short: "Publish a message with a delay",
		Long: `Publish a message that is delivered to TARGET later, and wait until it is stored. The body is read from stdin
if BODY is -, or if BODY is missing and stdin is not a terminal.

With --key the message is a named timer, which replaces the previous timer with this key and target. With --if absent,
the timer is set only if there is none. With --if GENERATION, it is set only if that generation is pending (see
delaybroker timers).

exit codes: 0 stored, 1 failed, 2 bad arguments or settings; with --key, also those of delaybroker timers`,
		Example: `  delaybroker pub orders.expire '{"id":1}' --in 15m
  delaybroker pub orders.expire '{"id":1}' --at 2026-12-24T18:00:00Z -H 'Delay-Expires: 10m' -H 'Delay-Spread: 5m'
  date | delaybroker pub clock.tick --level 5s --count 3
  delaybroker pub orders.expire '{"id":1}' --in 30m --key order-1 --if absent`,
		Args: argumentsBetween(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error { return a.pub(cmd, args, o) },
	}
	addParams(c, operation.Duration(&o.when.in, "in", "deliver after a duration: 15m, 1h30m, 1500ms"), operation.Parsed(
		&o.when.at, "at", "deliver at a time: RFC 3339 with a zone; rounded up to a millisecond", operation.ParseMoment))
	f := c.Flags()
	f.StringVar(&o.when.level, "level", "", "deliver after the delay of a level: 30m")
	addCompletion(c, "level", strings.Fields(levels.Default().String())...)
	addParams(c, operation.Headers(message.Header(o.header), "header, as in 'Key: value'; may be repeated"),
		operation.Count(&o.count, "count", "number of copies to publish; --json prints each", 1, 1, maxCount))
	f.StringVar(&o.timer.key, "key", "", "set the named timer with this key")
	f.StringVar(&o.timer.condition, "if", "", "with --key: absent, or the generation that the message replaces")
	f.StringVar(&o.timer.requestID, "word", "",
		"with --key: id of this request; if you repeat the request with the same id, it is executed once")
	return c
}

func (a *app) pub(cmd *cobra.Command, args []string, o pubOptions) error {
	if n := o.when.given(); n != 1 {
		return fmt.Errorf("%w: want one of --in, --at and --level, got %d", errUsage, n)
	}
	if o.timer != (timerOptions{}) {
		return a.pubTimer(cmd, args, o)
	}
	c, err := settings.ReadClient()
	if err != nil {
		return err
	}
	// A publisher may lack the permission to request the server's time. So pub uses the local clock for its warning about
	// a past time and for its error about a delay above DELAY_MAX_DELAY.
	now := time.Now()
	subject := o.when.subject(c.Policy.Names, args[0])
	p := publisher.Publisher{Policy: c.Policy, Message: &nats.Msg{Subject: subject, Header: o.header}}
	request, problem := p.Parse("", 0, now)
	if problem != nil {
		// A broker would make the message a dead letter with this reason.
		return fmt.Errorf("%w: %s", errUsage, problem.Sentence)
	}
	if p.Message.Data, err = readBody(cmd.InOrStdin(), args[1:]); err != nil {
		return err
	}
	return a.withSession(cmd.Context(), c, func(ctx context.Context, s *inspect.Session) error {
		p.Session = s
		past := ""
		if at := o.when.at; !at.IsZero() && at.Before(now) {
			past = fmt.Sprintf("--at %s is %s ago: the message is delivered immediately", text.Moment(at),
				text.Span(now.Sub(at)))
		} else if until := o.header.Get(message.HeaderUntil); until != "" && request.Due.Before(now) {
			past = fmt.Sprintf("%s %s is in the past: the message is delivered immediately", message.HeaderUntil,
				text.Printable(until, 100))
		}
		if past != "" && a.canAsk(cmd.InOrStdin()) {
			if err := a.ask(cmd.InOrStdin(), past+". Publish it?"); err != nil {
				return err
			}
		} else if past != "" {
			fmt.Fprintln(a.Err, past)
		}
		if err := a.pubAll(ctx, &p, o.count); err != nil {
			return err
		}
		if s.NoInstanceRuns(ctx, c.Policy.Names) {
			fmt.Fprintln(a.Err,
				"no broker answers: the message is stored, and a broker that starts will deliver it; see delaybroker doctor")
		}
		return nil
	})
}

func readBody(stdin io.Reader, args []string) ([]byte, error) {
	if len(args) > 0 && args[0] != "-" {
		return []byte(args[0]), nil
	}
	if f, ok := stdin.(*os.File); ok && len(args) == 0 && terminal.IsTerminal(f) {
		return nil, nil
	}
	body, err := io.ReadAll(stdin)
	if err != nil {
		return nil, fmt.Errorf("read the body from stdin: %w", err)
	}
	return body, nil
}

// deliveryTime is the requested time of delivery. The method pub checks that exactly one field is set.
type deliveryTime struct {
	in    string // a duration
	at    time.Time
	level string
}

// given returns the number of fields that are set.
func (w deliveryTime) given() (n int) {
	for _, set := range []bool{w.in != "", !w.at.IsZero(), w.level != ""} {
		if set {
			n++
		}
	}
	return n
}

// subject returns the subject to publish on.
func (w deliveryTime) subject(names message.Names, target string) string {
	switch {
	case !w.at.IsZero():
		return names.At(message.TimeToken(w.at), target)
	case w.level != "", slices.Contains(levels.PlainDurations(), w.in): // this may be a level, which saves a hop
		return names.Level(cmp.Or(w.level, w.in), target)
	}
	return names.In(w.in, target)
}
