package main

import (
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
	"delaybroker/broker/text"
	"delaybroker/cmd/delaybroker/publisher"
	"delaybroker/cmd/delaybroker/settings"
	"delaybroker/cmd/delaybroker/terminal"
	"delaybroker/levels"
)

const maxCount = 1_000_000

// pubOptions are the flags of pub.
type pubOptions struct {
	when    deliveryTime
	headers []string
	count   int
	timer   timerOptions
}

func (a *app) pubCommand() *cobra.Command {
	var o pubOptions
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
  delaybroker pub orders.expire '{"id":1}' --at 2026-12-24T18:00:00Z -H 'Delay-Expires: 10m'
  date | delaybroker pub clock.tick --level 5s --count 3
  delaybroker pub orders.expire '{"id":1}' --in 30m --key order-1 --if absent`,
		Args: argumentsBetween(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error { return a.pub(cmd, args, o) },
	}
	f := c.Flags()
	f.StringVar(&o.when.in, "in", "", "deliver after a duration: 15m, 1h30m, 1500ms")
	f.StringVar(&o.when.at, "at", "", "deliver at a time: RFC 3339 with a zone; rounded up to a millisecond")
	f.StringVar(&o.when.level, "level", "", "deliver after the delay of a level: 30m")
	addCompletion(c, "level", strings.Fields(levels.Default().String())...)
	f.StringArrayVarP(&o.headers, "header", "H", nil, "header, as in 'Key: value'; may be repeated")
	addCountFlag(f, &o.count, "count", "", 1, 1, maxCount, "number of copies to publish; --json prints each")
	f.StringVar(&o.timer.key, "key", "", "set the named timer with this key")
	f.StringVar(&o.timer.condition, "if", "", "with --key: absent, or the generation that the message replaces")
	f.StringVar(&o.timer.requestID, "word", "",
		"with --key: id of this request; if you repeat the request with the same id, it is executed once")
	return c
}

func (a *app) pub(cmd *cobra.Command, args []string, o pubOptions) error {
	if n := countGiven(o.when.in, o.when.at, o.when.level); n != 1 {
		return fmt.Errorf("%w: want one of --in, --at and --level, got %d", errUsage, n)
	}
	header, err := parseHeaders(o.headers)
	if err != nil {
		return err
	}
	if o.timer != (timerOptions{}) {
		return a.pubTimer(cmd, args, o, header)
	}
	c, err := settings.ReadClient()
	if err != nil {
		return err
	}
	// A publisher may lack the permission to request the server's time. So pub uses the local clock for its warning about
	// a past time and for its error about a delay above DELAY_MAX_DELAY.
	now := time.Now()
	subject, err := o.when.subject(c.Policy.Names, args[0])
	if err != nil {
		return err
	}
	p := publisher.Publisher{Policy: c.Policy, Message: &nats.Msg{Subject: subject, Header: header}}
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
		if age, ok := o.when.age(now); ok {
			fmt.Fprintf(a.Err, "--at %s is %s ago: the message is delivered immediately\n", o.when.at, text.Span(age))
		} else if until := header.Get(message.HeaderUntil); until != "" && request.Due.Before(now) {
			fmt.Fprintf(a.Err, "%s %s is in the past: the message is delivered immediately\n", message.HeaderUntil,
				text.Printable(until, 100))
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

// parseHeaders parses "Key: value".
func parseHeaders(lines []string) (nats.Header, error) {
	h := nats.Header{}
	for _, line := range lines {
		key, value, ok := strings.Cut(line, ":")
		if key = strings.TrimSpace(key); !ok || key == "" {
			return nil, fmt.Errorf("%w: header %q: want 'Key: value'", errUsage, line)
		}
		h.Add(key, strings.TrimSpace(value))
	}
	return h, nil
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

// deliveryTime is the requested time of delivery. The method pub checks that exactly one field is not empty.
type deliveryTime struct {
	in    string // a duration
	at    string // RFC 3339
	level string
}

// subject returns the subject to publish on.
func (w deliveryTime) subject(names message.Names, target string) (string, error) {
	switch {
	case w.level != "":
		return names.Level(w.level, target), nil
	case w.in != "":
		if _, err := levels.ParseDuration(w.in); err != nil {
			return "", fmt.Errorf("%w: --in: %w", errUsage, err)
		}
		// A duration with one unit may be a level, which saves a hop.
		if slices.Contains(levels.PlainDurations(), w.in) {
			return names.Level(w.in, target), nil
		}
		return names.In(w.in, target), nil
	}
	t, err := parseTime("--at", w.at)
	if err != nil {
		return "", err
	}
	return names.At(message.TimeToken(t), target), nil
}

// age returns the time since --at. Ok is false if --at is not in the past.
func (w deliveryTime) age(now time.Time) (age time.Duration, ok bool) {
	t, err := time.Parse(time.RFC3339Nano, w.at)
	return now.Sub(t), err == nil && t.Before(now)
}
