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

// timersTimeout bounds the requests to JetStream about one timer, with their retries, and each request to a broker.
const timersTimeout = 5 * time.Second

// outcomeError is an outcome other than success. The output already has the outcome.
type outcomeError struct{ timer.Outcome }

func (e outcomeError) Error() string { return "the outcome is " + string(e.Outcome) }

// exitCode returns the code of an outcome, and zero for success.
func (e outcomeError) exitCode() int {
	return map[timer.Outcome]int{timer.TooLate: 3, timer.NotFound: 4, timer.Conflict: 5, timer.Unknown: 6}[e.Outcome]
}

const outcomeCodes = `exit codes: 0 done, 1 failed, 2 bad arguments or settings, 3 too late: the
timer has fired, 4 not found, 5 conflict with another generation, 6 unknown: a change may have been made`

func (a *app) timersCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "timers",
		Short: "Show, cancel, move and fire named timers",
		Long: `Show, cancel, move and fire named timers. The commands use JetStream directly, and work even if no broker runs.
Only a user who may not read the stream of timers needs a broker: the command then asks it.

A timer is identified by a key and a target. Each set, each move and each round of a schedule gives the timer a new
generation: the sequence of the message that the stream stored. Of the firing and all changes of one generation, exactly
one succeeds.

A schedule in nats-server's format (DELAY_SCHEDULES) is a timer with the key _schedule.<subject of the schedule>. Before
a key that begins with -, write --.

` + outcomeCodes,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(a.timersShowCommand(), a.timersListCommand(), a.timersCancelCommand(), a.timersMoveCommand(),
		a.timersFireCommand())
	return c
}

// timerFlags has the flags of the commands that change one timer.
type timerFlags struct {
	generation uint64
	requestID  string
}

func (o *timerFlags) addFlags(c *cobra.Command) {
	c.Flags().Uint64Var(&o.generation, "generation", 0, "change the timer only if it has this generation")
	c.Flags().StringVar(&o.requestID, "word", "",
		"id of this request; a repetition with the same id changes nothing more")
}

func (a *app) timersShowCommand() *cobra.Command {
	var body bool
	c := &cobra.Command{
		Use:   "show KEY TARGET",
		Short: "Show the state of one timer",
		Long: "Show the state of one timer. The state of an ended timer is kept for DELAY_TIMER_HISTORY.\n\n" +
			outcomeCodes,
		Example: "  delaybroker timers show order-42 orders.expire",
		Args:    argumentsBetween(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			get := store.Change{Request: timer.Request{Verb: timer.Get}, Key: args[0], Target: args[1]}
			if !body {
				return a.executeChange(cmd, get)
			}
			return a.withTimers(cmd.Context(), func(ctx context.Context, timers *store.Timers) error {
				return a.showWholeTimer(ctx, timers, get)
			})
		},
	}
	c.Flags().BoolVar(&body, "body", false,
		"also show the stored headers and body, which needs permission to read the stream; with --json, the body is base64")
	return c
}

func (a *app) showWholeTimer(ctx context.Context, timers *store.Timers, get store.Change) error {
	answer, err := changeTimer(ctx, timers, get)
	if err != nil {
		return err
	}
	if answer.Outcome == timer.NotFound {
		return a.showTimer(answer)
	}
	s, err := readTimer(ctx, timers, get.Key, get.Target)
	if err != nil {
		return err
	}
	content := contentView{Size: len(s.Message.Data), Headers: s.Message.Header, Payload: s.Message.Data}
	if !a.AsJSON(struct {
		store.Answer
		contentView
	}{answer, content}) {
		a.printTimer(answer)
		a.showContent(content)
	}
	return outcomeErr(answer)
}

func (a *app) timersFireCommand() *cobra.Command {
	var o timerFlags
	c := &cobra.Command{
		Use:   "fire KEY TARGET",
		Short: "Make one timer due immediately",
		Long: `Make one timer due immediately. The timer is delivered as soon as a broker runs. For a recurring timer, this is
an additional delivery, and the pending round fires at its time.

` + outcomeCodes,
		Example: "  delaybroker timers fire order-42 orders.expire",
		Args:    argumentsBetween(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.executeChange(cmd, o.change(timer.Fire, args))
		},
	}
	o.addFlags(c)
	return c
}

func (o timerFlags) change(verb timer.Verb, args []string) store.Change {
	return store.Change{
		Request: timer.Request{Verb: verb, Generation: o.generation, ID: o.requestID}, Key: args[0], Target: args[1],
	}
}

// withTimers connects, and calls do with access to the timers. An interrupt ends the context of do, and so does a
// request that the server refuses.
func (a *app) withTimers(ctx context.Context, do func(context.Context, *store.Timers) error) error {
	c, err := settings.ReadClient()
	if err != nil {
		return err
	}
	return a.withSession(ctx, c, func(ctx context.Context, s *inspect.Session) error {
		ctx, cancel := s.WithRefusal(ctx)
		defer cancel()
		return do(ctx, s.Timers(c.Policy))
	})
}

// executeChange executes a change, and prints the answer. If the change needs a read of the stream of timers, and the
// user may not read it, a broker executes the change. A set is one publish, and needs a read only after a missing or
// negative answer. Without permission to read, the outcome of such a set is unknown.
func (a *app) executeChange(cmd *cobra.Command, change store.Change) error {
	if change.ID == "" {
		change.ID = rand.Text() // the broker recognizes a change that this process has already made
	}
	err := a.withSecretsIfNeeded(cmd, func(ctx context.Context, timers *store.Timers) error {
		answer, err := changeTimer(ctx, timers, change)
		switch forbidden := mayNotRead(ctx, timers); {
		case forbidden && change.Verb != timer.Set && (err != nil || answer.Outcome == timer.Unknown):
			return errMayNotRead
		case forbidden && answer.Outcome == timer.Unknown:
			answer.Why = unknownSetReason(change)
		case err != nil:
			return err
		}
		return a.showTimer(answer)
	})
	return a.fallBackToBroker(err, func() error { return a.askTimer(cmd.Context(), change) })
}

// withSecretsIfNeeded calls do through withTimers. If do returns store.ErrSecret, withSecretsIfNeeded calls do again,
// through withSecrets.
func (a *app) withSecretsIfNeeded(cmd *cobra.Command, do func(context.Context, *store.Timers) error) error {
	err := a.withTimers(cmd.Context(), do)
	if errors.Is(err, store.ErrSecret) {
		return a.withSecrets(cmd, do)
	}
	return err
}

// changeTimer executes a change, within timersTimeout.
func changeTimer(ctx context.Context, timers *store.Timers, change store.Change) (store.Answer, error) {
	limited, cancel := context.WithTimeout(ctx, timersTimeout)
	defer cancel()
	answer, err := timers.Do(limited, change)
	if refused := convertRefusal(err); errors.Is(refused, errUsage) {
		return answer, refused
	}
	if cause := context.Cause(ctx); err == nil && answer.Outcome == timer.Unknown && cause != nil {
		if subject, _ := jsapi.RefusedSubject(cause); subject == timers.Policy.Names.Timer(change.Key, change.Target) {
			err = cause // the request was not stored
		} else {
			answer.Why = cause.Error() // the request may be stored, and this user may not read it
		}
	}
	return answer, inspect.Cause(ctx, err)
}

// showTimer prints an answer, and returns its outcome as an error, or nil for success.
func (a *app) showTimer(answer store.Answer) error {
	if !a.AsJSON(answer) {
		a.printTimer(answer)
	}
	return outcomeErr(answer)
}

// outcomeErr returns the outcome of a printed answer as an error, or nil for success.
func outcomeErr(answer store.Answer) error {
	if err := (outcomeError{answer.Outcome}); err.exitCode() > 0 {
		return reportedError{err}
	}
	return nil
}

func (a *app) printTimer(answer store.Answer) {
	outcome := string(answer.Outcome)
	if answer.Delivery != "" {
		outcome += " (" + string(answer.Delivery) + ")"
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
		cells = append(cells, recurrenceText(answer.Recurring))
	}
	if answer.Why != "" {
		columns, cells = append(columns, terminal.Column{Name: "because", Min: 12, Wrap: true}), append(cells, answer.Why)
	}
	t := a.Sheet(columns)
	t.Add(cells...)
	t.Print()
}
