package main

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"delaybroker/broker/inspect"
	"delaybroker/broker/jsapi"
	"delaybroker/broker/text"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/store"
	"delaybroker/cmd/delaybroker/settings"
	"delaybroker/cmd/delaybroker/terminal"
)

// timersTimeout is the time for which a command on one timer retries before it reports an unknown outcome.
const timersTimeout = 5 * time.Second

// outcomeError is an outcome that a script can distinguish from success. It is an answer and has been printed.
type outcomeError struct{ timer.Outcome }

func (e outcomeError) Error() string { return "the outcome is " + string(e.Outcome) }

// exitCode returns a separate code for each outcome that is no success.
func (e outcomeError) exitCode() int {
	return map[timer.Outcome]int{timer.TooLate: 3, timer.NotFound: 4, timer.Conflict: 5, timer.Unknown: 6}[e.Outcome]
}

const outcomeCodes = `exit codes: 0 done, 1 failed and nothing was done, 2 bad arguments or settings, 3 too late: it has
fired, 4 not found, 5 another generation stands there, 6 unknown: it may have been done; ask again`

func (a *app) timersCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "timers",
		Short: "Look at named timers, cancel them, move them, fire them",
		Long: `Look at named timers, cancel them, move them, fire them. The commands ask JetStream, and work with the broker
down too.

A timer is a key and a target; its generation is the sequence of the message that set it. Every verdict holds only while
that generation stands: of fire, cancel, move and replace exactly one wins.

A schedule as of nats-server (DELAY_SCHEDULES) has the key _schedule.<its subject>, and the target that it was given. A
key that begins with - goes behind --.

` + outcomeCodes,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(a.timersShowCommand(), a.timersListCommand(), a.timersCancelCommand(), a.timersMoveCommand(),
		a.timersFireCommand())
	return c
}

// oneTimer has the flags about one timer.
type oneTimer struct {
	generation uint64
	word       string
}

func (o *oneTimer) flags(c *cobra.Command) {
	c.Flags().Uint64Var(&o.generation, "generation", 0, "only this generation; default: any generation")
	c.Flags().StringVar(&o.word, "word", "",
		"a word of this request alone: asked again with it, what was done before is known again")
}

func (a *app) timersShowCommand() *cobra.Command {
	var body bool
	c := &cobra.Command{
		Use:     "show KEY TARGET",
		Short:   "Show what became of one timer",
		Long:    "Show what became of one timer, as long as DELAY_TIMER_HISTORY keeps it.\n\n" + outcomeCodes,
		Example: "  delaybroker timers show order-42 orders.expire",
		Args:    argumentsBetween(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			get := store.Change{Request: timer.Request{Verb: timer.Get}, Key: args[0], Target: args[1]}
			if !body {
				return a.oneTimer(cmd, get)
			}
			return a.withTimers(cmd.Context(), func(ctx context.Context, timers *store.Timers) error {
				return a.showWholeTimer(ctx, timers, get)
			})
		},
	}
	c.Flags().BoolVar(&body, "body", false, "show the headers and the body of its last entry, too; with --json, base64")
	return c
}

// showWholeTimer shows a timer with the headers and the body of its last entry.
func (a *app) showWholeTimer(ctx context.Context, timers *store.Timers, get store.Change) error {
	answer, err := doTimer(ctx, timers, get)
	if err != nil {
		return err
	}
	if answer.Outcome == timer.NotFound {
		return a.showTimer(answer)
	}
	s, err := lookAt(ctx, timers, get.Key, get.Target)
	if err != nil {
		return err
	}
	content := contentView{Size: len(s.In.Data), Headers: s.In.Header, Payload: s.In.Data}
	if !a.AsJSON(struct {
		store.Answer
		contentView
	}{answer, content}) {
		a.printTimer(answer)
		a.showContent(content)
	}
	return errorOf(answer)
}

func (a *app) timersFireCommand() *cobra.Command {
	var o oneTimer
	c := &cobra.Command{
		Use:     "fire KEY TARGET",
		Short:   "Make one timer due at once",
		Long:    "Make one timer due at once: it is delivered as soon as a broker runs.\n\n" + outcomeCodes,
		Example: "  delaybroker timers fire order-42 orders.expire",
		Args:    argumentsBetween(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.oneTimer(cmd, o.wish(timer.Fire, args))
		},
	}
	o.flags(c)
	return c
}

func (o oneTimer) wish(verb timer.Verb, args []string) store.Change {
	return store.Change{
		Request: timer.Request{Verb: verb, Generation: o.generation, ID: o.word}, Key: args[0], Target: args[1],
	}
}

// withTimers connects, and runs a command with timers, until the command ends, is interrupted, or the server forbids a
// request.
func (a *app) withTimers(ctx context.Context, do func(context.Context, *store.Timers) error) error {
	c, err := settings.ReadClient()
	if err != nil {
		return err
	}
	return a.withSession(ctx, c, func(ctx context.Context, s *inspect.Session) error {
		ctx, cancel := s.Allowed(ctx)
		defer cancel()
		return do(ctx, s.Timers(c.Policy))
	})
}

// oneTimer carries out a change, and prints the answer. If the user may not read the stream of timers, a broker does
// it. A set needs no broker: it is published with its condition, and only the result of the condition cannot be read.
func (a *app) oneTimer(cmd *cobra.Command, w store.Change) error {
	if w.ID == "" {
		w.ID = rand.Text() // the same for both ways
	}
	err := a.withSecretsIfNeeded(cmd, func(ctx context.Context, timers *store.Timers) error {
		answer, err := doTimer(ctx, timers, w)
		switch unread := mayNotRead(ctx, timers); {
		case unread && w.Verb != timer.Set && (err != nil || answer.Outcome == timer.Unknown):
			return errMayNotRead
		case unread && answer.Outcome == timer.Unknown:
			answer.Why = unreadSet(w)
		case err != nil:
			return err
		}
		return a.showTimer(answer)
	})
	return a.orAsk(err, func() error { return a.askTimer(cmd.Context(), w) })
}

// withSecretsIfNeeded is withTimers, and then withSecrets if withTimers has shown that the brokers' secret is needed.
func (a *app) withSecretsIfNeeded(cmd *cobra.Command, do func(context.Context, *store.Timers) error) error {
	err := a.withTimers(cmd.Context(), do)
	if errors.Is(err, store.ErrSecret) {
		return a.withSecrets(cmd, do)
	}
	return err
}

func (a *app) doAndShow(ctx context.Context, timers *store.Timers, w store.Change) error {
	answer, err := doTimer(ctx, timers, w)
	if err != nil {
		return err
	}
	return a.showTimer(answer)
}

// doTimer carries out a change.
func doTimer(ctx context.Context, timers *store.Timers, w store.Change) (store.Answer, error) {
	limited, cancel := context.WithTimeout(ctx, timersTimeout)
	defer cancel()
	answer, err := timers.Do(limited, w)
	if refused := usageOf(err); errors.Is(refused, errUsage) {
		return answer, refused
	}
	if cause := context.Cause(ctx); err == nil && answer.Outcome == timer.Unknown && cause != nil {
		if subject, _ := jsapi.Forbidden(cause); subject == timers.Policy.Names.Timer(w.Key, w.Target) {
			err = cause // the request was not stored
		} else {
			answer.Why = cause.Error() // the request may be stored, and we may not read it
		}
	}
	return answer, inspect.Cause(ctx, err)
}

// showTimer prints an answer. An outcome that is no success is the error.
func (a *app) showTimer(answer store.Answer) error {
	if !a.AsJSON(answer) {
		a.printTimer(answer)
	}
	return errorOf(answer)
}

// errorOf returns the error of an answer that was printed: nil for success.
func errorOf(answer store.Answer) error {
	if err := (outcomeError{answer.Outcome}); err.exitCode() > 0 {
		return logged{err}
	}
	return nil
}

func (a *app) printTimer(answer store.Answer) {
	outcome := string(answer.Outcome)
	if answer.Became != "" {
		outcome += " (" + string(answer.Became) + ")"
	}
	columns := []terminal.Column{
		{Name: "key", Min: 8}, {Name: "target", Min: 10}, {Name: "outcome"}, {Name: "generation"},
	}
	cells := []any{answer.Key, answer.Target, outcome, strconv.FormatUint(answer.Generation, 10)}
	if !answer.Due.IsZero() {
		columns, cells = append(columns, terminal.Column{Name: "due"}), append(cells, text.Moment(answer.Due))
	}
	if answer.Recurring != nil {
		columns = append(columns, terminal.Column{Name: "recurs", Min: 10})
		cells = append(cells, recursOf(answer.Recurring))
	}
	if answer.Why != "" {
		columns, cells = append(columns, terminal.Column{Name: "because", Min: 12, Wrap: true}), append(cells, answer.Why)
	}
	t := a.Sheet(columns)
	t.Add(cells...)
	t.Print()
}
