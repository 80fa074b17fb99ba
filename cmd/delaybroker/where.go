package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"delaybroker/broker/message"
)

// errNotStored is returned when a message is in no lane and no dead letter. It is an answer and has been printed.
var errNotStored = errors.New("the message is in no lane and is no dead letter")

// whereabouts is what is known of one message.
type whereabouts struct {
	ID       string    `json:"id"`
	Found    bool      `json:"found"`
	Answer   string    `json:"answer"` // in a sentence
	Stream   string    `json:"stream,omitempty"`
	Sequence uint64    `json:"sequence,omitempty"`
	Accepted time.Time `json:"accepted,omitzero"`
	Due      time.Time `json:"due,omitzero"`
	Target   string    `json:"target,omitempty"`
	Attempts int       `json:"attempts"` // deliveries refused so far
	RetryAt  time.Time `json:"retry_at,omitzero"`
	Code     string    `json:"code,omitempty"` // of a dead letter
	Reason   string    `json:"reason,omitempty"`
	Searched uint64    `json:"searched"` // messages looked at
}

func (a *app) whereCommand() *cobra.Command {
	var most uint64
	c := &cobra.Command{
		Use:   "where <Delay-Id>",
		Short: "Find one message by its Delay-Id",
		Long: `Find one message: in the stream that accepted it, in the lanes behind that, or among the dead letters.

Delay-Id is what "delaybroker pub" prints and what deliveries and dead letters have as a header. Its first two parts will do,
as in DELAY_INTAKE-29, but a search takes longer then.

exit codes: 0 found, 1 not found or not to be looked for, 2 wrong words or settings`,
		Args: argumentsBetween(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			return a.where(ctx, args[0], most)
		},
	}
	c.Flags().Uint64Var(&most, "most", 5_000_000, "give up after so many messages")
	return c
}

func (a *app) where(ctx context.Context, text string, most uint64) error {
	id, partial, err := parseWhere(text)
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	o, err := a.operate(ctx)
	if err != nil {
		return err
	}
	defer o.close()
	s := search{operator: o, id: id, partial: partial, most: most, progress: a.searching}
	w, err := s.run(ctx)
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

// parseWhere reads a Delay-Id, or as much of it as an acknowledgement says: the stream and the sequence. Pub prints that of a
// message which moved on before anybody could ask when it was stored.
func parseWhere(text string) (id message.ID, partial bool, err error) {
	if id, err = message.ParseID(text); err == nil {
		return id, false, nil
	}
	i := strings.LastIndexByte(text, '-')
	if i < 1 || strings.ContainsAny(text, ".*> \t\r\n") {
		return id, false, err
	}
	n, bad := strconv.ParseUint(text[i+1:], 10, 63)
	if bad != nil || n == 0 {
		return id, false, err
	}
	return message.ID{Stream: text[:i], Sequence: n}, true, nil
}

// searching tells whoever waits that something happens.
func (a *app) searching(searched, pending uint64) {
	fmt.Fprintf(a.stderr, "searched %d of about %d messages\n", searched, pending)
}

func (a *app) showWhere(w whereabouts) error {
	if a.json {
		return a.printJSON(w)
	}
	t := a.sheet(column{}, column{least: 12, wrap: true})
	for _, line := range []struct {
		name  string
		value string
		known bool
	}{
		{"message", w.ID, true},
		{"is", w.Answer, true},
		{"stored", fmt.Sprintf("%s, sequence %d", w.Stream, w.Sequence), w.Found},
		{"accepted", moment(w.Accepted), !w.Accepted.IsZero()},
		{"due", moment(w.Due), !w.Due.IsZero()},
		{"target", w.Target, w.Target != ""},
		{"refused", fmt.Sprintf("%d times", w.Attempts), w.Attempts > 0},
		{"retried at", moment(w.RetryAt), !w.RetryAt.IsZero()},
		{"code", w.Code, w.Code != ""},
		{"reason", w.Reason, w.Reason != ""},
		{"searched", fmt.Sprintf("%d messages", w.Searched), w.Searched > 0},
	} {
		if line.known {
			t.add(line.name, printable(line.value, 600))
		}
	}
	t.print()
	return nil
}
