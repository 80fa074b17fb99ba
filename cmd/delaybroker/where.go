package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"delaybroker/broker/inspect"
	"delaybroker/broker/text"
	"delaybroker/cmd/terminal"
)

// errNotStored is returned when a message is in no lane and no dead letter. It is an answer and has been printed.
var errNotStored = errors.New("the message is in no lane and is no dead letter")

func (a *app) whereCommand() *cobra.Command {
	var most uint64
	c := &cobra.Command{
		Use:   "where <Delay-Id>",
		Short: "Find one message by its Delay-Id",
		Long: `Find one message: in the stream that accepted it, in the lanes behind that, or among the dead letters. Where
brokers keep a journal (DELAY_JOURNAL), it says when the message was delivered.

Delay-Id is what "delaybroker pub" prints and what deliveries and dead letters have as a header. Its first two parts
will do, as in DELAY_INTAKE-29, but a search takes longer then.

exit codes: 0 found, 1 not found or not to be looked for, 2 wrong words or settings`,
		Args: argumentsBetween(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			wanted, err := inspect.ParseWanted(args[0])
			if err != nil {
				return fmt.Errorf("%w: %w", errUsage, err)
			}
			return a.inspect(cmd, func(ctx context.Context, i *inspect.Inspector) error {
				return a.where(ctx, i, wanted, most)
			})
		},
	}
	c.Flags().Uint64Var(&most, "most", 5_000_000, "give up after so many messages")
	return c
}

func (a *app) where(ctx context.Context, i *inspect.Inspector, wanted inspect.Wanted, most uint64) error {
	w, err := i.Where(ctx, wanted, most, a.searching)
	if err != nil {
		return err
	}
	if err := a.showWhere(w); err != nil {
		return err
	}
	if !w.Found {
		return logged{errNotStored}
	}
	return nil
}

func refusedTimes(w inspect.Whereabouts) string {
	times := terminal.Counted(w.Attempts, "time")
	if w.Allowed > 0 {
		times += fmt.Sprintf(" of %d", w.Allowed)
	}
	if !w.LastFailure.IsZero() {
		times += ", lastly at " + text.Moment(w.LastFailure)
	}
	return times
}

// searching shows the progress of the search.
func (a *app) searching(searched, pending uint64) {
	fmt.Fprintf(a.Err, "searched %d of about %d messages\n", searched, pending)
}

func (a *app) showWhere(w inspect.Whereabouts) error {
	if a.JSON {
		return a.PrintJSON(w)
	}
	t := a.Sheet([]terminal.Column{{}, {Least: 12, Wrap: true}})
	for _, line := range []struct {
		name  string
		value string
		known bool
	}{
		{"message", w.ID, true},
		{"is", w.Answer, true},
		{"stored", fmt.Sprintf("%s, sequence %d", w.Stream, w.Sequence), w.Stream != ""},
		{"accepted", text.Moment(w.Accepted), !w.Accepted.IsZero()},
		{"due", text.Moment(w.Due), !w.Due.IsZero()},
		{"target", w.Target, w.Target != ""},
		{"refused", refusedTimes(w), w.Attempts > 0},
		{"last reason", w.LastError, w.LastError != ""},
		{"put off", w.Deferred, w.Deferred != ""},
		{"next attempt", text.Moment(w.RetryAt), !w.RetryAt.IsZero()},
		{"by", w.Instance, w.Instance != ""},
		{"code", w.Code, w.Code != ""},
		{"reason", w.Reason, w.Reason != ""},
		{"searched", fmt.Sprintf("%d messages", w.Searched), w.Searched > 0},
	} {
		if line.known {
			t.Add(line.name, text.Printable(line.value, 600))
		}
	}
	t.Print()
	return nil
}
