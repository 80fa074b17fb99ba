package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"delaybroker/broker/client"
	"delaybroker/broker/inspect"
	"delaybroker/broker/operation"
	"delaybroker/broker/text"
	"delaybroker/cmd/delaybroker/settings"
	"delaybroker/cmd/delaybroker/terminal"
)

const (
	clockLayout = "15:04:05.000"

	// flushTimeout is the timeout for the server to confirm the subscription.
	flushTimeout = 5 * time.Second

	// maxBody is the maximum length of a body that sub shows, in characters.
	maxBody = 60
)

func (a *app) subCommand() *cobra.Command {
	var count int
	var headers bool
	c := &cobra.Command{
		Use:   "sub SUBJECT",
		Short: "Show the messages on a subject, with their lateness",
		Long: `Show the messages that arrive on a subject, with their due time and their lateness by the local clock. Messages
that no broker delivered are shown too. The command is a core NATS subscriber, so it shows no message from before its
start.`,
		Example: `  delaybroker sub 'orders.>'
  delaybroker sub orders.expire --count 1 --json`,
		Args: argumentsBetween(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.sub(cmd.Context(), args[0], count, headers) },
	}
	c.Flags().BoolVar(&headers, "headers", false, "show the headers too; --json always does")
	addParams(c,
		operation.Count(&count, "count", "number of messages to wait for; 0 for no limit", 0, 0, operation.NoBound))
	return c
}

func (a *app) sub(ctx context.Context, subject string, count int, headers bool) error {
	if _, err := operation.ParsePattern(subject); err != nil {
		return fmt.Errorf("%w: subscribe to %q: %w", errUsage, subject, err)
	}
	c, err := settings.ReadClient()
	if err != nil {
		return err
	}
	return a.withSession(ctx, c, func(ctx context.Context, s *inspect.Session) error {
		return a.showArrivals(ctx, s, subject, count, headers)
	})
}

// showArrivals shows at most count messages on a subject; zero means no limit. The end of ctx is no error.
func (a *app) showArrivals(ctx context.Context, s *inspect.Session, subject string, count int, headers bool) error {
	allowed, cancel := s.WithRefusal(ctx)
	defer cancel()
	sub, err := s.Conn.SubscribeSync(subject)
	if err != nil {
		return fmt.Errorf("%w: subscribe to %q: %w", errUsage, subject, err)
	}
	if err := s.Conn.FlushTimeout(flushTimeout); err != nil {
		return fmt.Errorf("subscribe to %s: %w", subject, err)
	}
	if !a.JSON {
		// The heading has the time zone of this host.
		a.rowOf("TIME "+time.Now().Format("MST"), "LATE", "DUE", "SUBJECT", "ID", "BODY")
	}
	for n := 0; (count == 0 || n < count) && a.Failure() == nil; n++ {
		m, err := sub.NextMsgWithContext(allowed)
		if ctx.Err() != nil {
			return nil
		}
		if cause := context.Cause(allowed); cause != nil && !errors.Is(cause, context.Canceled) {
			err = cause
		}
		if err != nil {
			return fmt.Errorf("subscribe to %s: %w", subject, err)
		}
		delay, _ := client.ParseArrival(m)
		a.showArrival(arrival{delay, m}, headers)
	}
	return nil
}

func (a *app) showArrival(m arrival, headers bool) {
	if a.AsJSON(m) {
		return
	}
	late, due, id := "-", "-", "-"
	if !m.Due.IsZero() {
		late, due, id = terminal.Lateness(m.Lateness()), m.Due.Local().Format(clockLayout), m.ID
	}
	a.rowOf(m.At.Format(clockLayout), late, due, text.Printable(m.message.Subject, 256),
		text.Printable(id, 256), text.Printable(string(m.message.Data), maxBody))
	if !headers {
		return
	}
	header := m.message.Header
	for _, name := range slices.Sorted(maps.Keys(header)) {
		for _, value := range header[name] {
			a.Printf("    %s\n", text.Printable(name+": "+value, terminal.MaxCell))
		}
	}
}

// rowOf prints one row. The table is endless, so its columns have fixed widths.
func (a *app) rowOf(at, late, due, subject, id, body string) {
	line := fmt.Sprintf("%-12s  %9s  %-12s  %-20s  %-34s  %s", at, late, due, subject, id, body)
	a.Printf("%s\n", strings.TrimRight(line, " "))
}

// An arrival is a message that the command received. Its lateness is by the local clock.
type arrival struct {
	client.Arrival // without a due time if no broker delivered the message

	message *nats.Msg
}

// MarshalJSON leaves out the due time, the lateness and the id if no broker delivered the message.
func (a arrival) MarshalJSON() ([]byte, error) {
	m := a.message
	object := map[string]any{"time": a.At.UTC(), "subject": m.Subject}
	if !a.Due.IsZero() {
		object["due"], object["late_ms"], object["id"] = a.Due, terminal.Milliseconds(a.Lateness()), a.ID
	}
	if len(m.Header) > 0 {
		object["headers"] = m.Header
	}
	if utf8.Valid(m.Data) {
		object["body"] = string(m.Data)
	} else {
		object["body_base64"] = m.Data
	}
	return json.Marshal(object)
}
