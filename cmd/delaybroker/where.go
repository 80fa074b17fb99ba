package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/cobra"

	"delaybroker/broker/inspect"
	"delaybroker/broker/text"
	"delaybroker/cmd/delaybroker/terminal"
)

// errNotStored is returned if a message is not found. The output already says so.
var errNotStored = errors.New("the message is in no lane and is no dead letter")

func (a *app) whereCommand() *cobra.Command {
	var o whereOptions
	c := &cobra.Command{
		Use:   "where <Delay-Id>",
		Short: "Find one message by its Delay-Id",
		Long: `Find one message: in the stream that accepted it, in a later lane, or among the dead letters. If brokers keep a
journal (DELAY_JOURNAL), the answer for a delivered message has the time of the delivery.

"delaybroker pub" prints the Delay-Id, and deliveries and dead letters have it as a header. Its three parts are a
stream, a sequence and a time. Without the time, as in DELAY_INTAKE-29, the search takes longer.

exit codes: 0 found, 1 not found, or the search failed, 2 bad arguments or settings`,
		Args: argumentsBetween(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.where(cmd, args[0], o) },
	}
	o.addFlags(c)
	c.Flags().BoolVar(&o.body, "body", false, "also show the headers and the body of the message")
	return c
}

// pendingShowCommand returns the command pending show, which is another name of where --body.
func (a *app) pendingShowCommand() *cobra.Command {
	o := whereOptions{body: true}
	c := &cobra.Command{
		Use:   "show <Delay-Id>",
		Short: "Show one message, with its headers and body",
		Long: `Show one message, with its stored headers and body: text unchanged, other bytes as a hex dump. With --json, the
payload is complete, in base64. The Delay-Id may lack its last part, the time, as in DELAY_INTAKE-29.

exit codes: 0 found, 1 not found, or the search failed, 2 bad arguments or settings`,
		Args: argumentsBetween(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.where(cmd, args[0], o) },
	}
	o.addFlags(c)
	return c
}

type whereOptions struct {
	maxRead uint64
	body    bool
}

func (o *whereOptions) addFlags(c *cobra.Command) {
	c.Flags().Uint64Var(&o.maxRead, "most", 5_000_000, "maximum number of messages to search")
}

func (a *app) where(cmd *cobra.Command, id string, o whereOptions) error {
	ref, err := inspect.ParseMessageRef(id)
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	return a.withInspector(cmd, func(ctx context.Context, i *inspect.Inspector) error {
		return a.findMessage(ctx, i, ref, o)
	})
}

func (a *app) findMessage(ctx context.Context, i *inspect.Inspector, ref inspect.MessageRef, o whereOptions) error {
	w, err := i.Where(ctx, ref, o.maxRead, a.showSearchProgress)
	if err != nil {
		return err
	}
	var content *contentView
	if o.body && w.Stream != "" {
		ctx, cancel := i.WithRefusal(ctx)
		defer cancel()
		in, err := i.Message(ctx, w.Stream, w.Sequence)
		switch {
		case errors.Is(err, jetstream.ErrMsgNotFound):
			return fmt.Errorf("%s has left %s during the search; try again", w.ID, w.Stream)
		case err != nil:
			return inspect.Cause(ctx, err)
		}
		content = &contentView{Size: len(in.Data), Headers: in.Header, Payload: in.Data}
	}
	a.showWhere(w, content)
	if !w.Found {
		return reportedError{errNotStored}
	}
	return nil
}

// refusedTimes describes the refusals of a message: their number, their maximum, and the time of the last one.
func refusedTimes(w inspect.Whereabouts) string {
	times := terminal.Counted(w.Attempts, "time")
	if w.Allowed > 0 {
		times += fmt.Sprintf(" of %d", w.Allowed)
	}
	if !w.LastFailure.IsZero() {
		times += ", last at " + text.Moment(w.LastFailure)
	}
	return times
}

// showSearchProgress prints the progress of a search, on a terminal only.
func (a *app) showSearchProgress(searched, total uint64) {
	if !terminal.IsTerminal(a.Err) {
		return
	}
	fmt.Fprintf(a.Err, "searched %d of about %d messages\n", searched, total)
}

// showWhere prints the place of a message, and its content unless that is nil.
func (a *app) showWhere(w inspect.Whereabouts, content *contentView) {
	if a.AsJSON(struct {
		inspect.Whereabouts
		*contentView
	}{w, content}) {
		return
	}
	t, line := a.properties()
	line("message", w.ID, true)
	line("state", w.Answer, true)
	line("stored", fmt.Sprintf("%s, sequence %d", w.Stream, w.Sequence), w.Stream != "")
	line("accepted", text.Moment(w.Accepted), !w.Accepted.IsZero())
	line("due", text.Moment(w.Due), !w.Due.IsZero())
	line("target", w.Target, w.Target != "")
	line("refused", refusedTimes(w), w.Attempts > 0)
	line("last reason", w.LastError, w.LastError != "")
	line("deferred", w.Deferred, w.Deferred != "")
	line("next attempt", text.Moment(w.RetryAt), !w.RetryAt.IsZero())
	line("by", w.Instance, w.Instance != "")
	line("code", w.Code, w.Code != "")
	line("reason", w.Reason, w.Reason != "")
	line("searched", fmt.Sprintf("%d messages", w.Searched), w.Searched > 0)
	t.Print()
	if content != nil {
		a.showContent(*content)
	}
}
