package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"delaybroker/broker/inspect"
	"delaybroker/broker/message"
	"delaybroker/broker/text"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/entry"
	"delaybroker/broker/timer/store"
	"delaybroker/levels"
)

func (a *app) schedulesCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "schedules",
		Short: "Manage recurring named timers",
		Long: `Manage recurring named timers, with an interval or a cron expression in a time zone. The commands use JetStream
directly, and work even if no broker runs. For a user who may not read the stream of timers, some commands ask a broker.

A schedule is a timer: its NAME is the timer's key. If several targets have a schedule with one name, --target selects
one. A schedule in nats-server's format (DELAY_SCHEDULES) has the NAME _schedule.<subject of the schedule>.

` + outcomeCodes,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(a.schedulesAddCommand(), a.schedulesApplyCommand(), a.schedulesListCommand(), a.schedulesShowCommand(),
		a.schedulesNextCommand(), a.schedulesImportCommand(),
		a.schedulesVerbCommand("pause", timer.Pause, "Stop a schedule until it is resumed",
			"The pending round does not fire. A round that has fired is still delivered."),
		a.schedulesVerbCommand("resume", timer.Resume, "Continue a paused schedule",
			"The rounds during the pause are missed rounds: the schedule's option --missed decides which fire."),
		a.schedulesVerbCommand("fire", timer.Fire, "Deliver a schedule's message once, now",
			"This is an additional delivery, as soon as a broker runs. The pending round\nfires at its time."),
		a.schedulesVerbCommand("rm", timer.Cancel, "Remove a schedule",
			"No further round fires. A round that has fired is still delivered."))
	return c
}

func (a *app) schedulesVerbCommand(name string, verb timer.Verb, short, long string) *cobra.Command {
	var target string
	c := &cobra.Command{
		Use:     name + " NAME",
		Short:   short,
		Long:    short + ". " + long + "\n\n" + outcomeCodes,
		Example: "  delaybroker schedules " + name + " nightly",
		Args:    argumentsBetween(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			change := store.Change{Request: timer.Request{Verb: verb}, Key: args[0], Target: target}
			if _, isNATSSchedule := message.ParseScheduleName(change.Key); target != "" || isNATSSchedule {
				return a.executeChange(cmd, change)
			}
			return a.withSecretsIfNeeded(cmd, func(ctx context.Context, timers *store.Timers) (err error) {
				if change.Target, err = a.findTarget(ctx, timers, change.Key, ""); err != nil {
					return err
				}
				answer, err := changeTimer(ctx, timers, change)
				if err != nil {
					return err
				}
				return a.showTimer(answer)
			})
		},
	}
	addTargetFlag(c, &target)
	return c
}

// withSecrets is like withTimers, for changes that only brokers and operators with the brokers' secret can make. The
// secret is in DELAY_SECRET or in the streams.
func (a *app) withSecrets(cmd *cobra.Command, do func(context.Context, *store.Timers) error) error {
	return a.withInspector(cmd, func(ctx context.Context, i *inspect.Inspector) error {
		if err := i.ReadKeys(ctx); err != nil {
			return fmt.Errorf("read the secret of the brokers: %w", err)
		}
		ctx, cancel := i.WithRefusal(ctx)
		defer cancel()
		return do(ctx, i.Timers())
	})
}

func addTargetFlag(c *cobra.Command, target *string) {
	c.Flags().StringVar(target, "target", "", "the target, if several have a schedule with the name")
}

// findTarget returns target. If target is empty, findTarget returns the target of the only schedule with the name, or
// "" for a schedule in nats-server's format, which needs no target.
func (a *app) findTarget(ctx context.Context, timers *store.Timers, name, target string) (string, error) {
	if _, ok := message.ParseScheduleName(name); ok {
		return target, nil
	}
	if problem := entry.CheckKey(name); problem != nil {
		return "", fmt.Errorf("%w: %s", errUsage, problem.Sentence)
	}
	if target != "" {
		return target, nil
	}
	var targets []string
	for row, err := range timers.ListRecurring(ctx, store.Filter{Key: name}) {
		if mayNotRead(ctx, timers) {
			return "", fmt.Errorf("%w, and the target of the schedule %s is in that stream: set --target, to ask a broker",
				errMayNotRead, name)
		}
		if err != nil {
			return "", inspect.Cause(ctx, convertRefusal(err))
		}
		targets = append(targets, row.Target)
	}
	switch len(targets) {
	case 0:
		return "", a.showNoSchedule(name)
	case 1:
		return targets[0], nil
	}
	slices.Sort(targets)
	return "", fmt.Errorf("%w: there are schedules %s for several targets: set --target %s", errUsage, name,
		text.Printable(strings.Join(targets, ", or "), 600))
}

// showNoSchedule prints that there is no such schedule, and returns this outcome as an error.
func (a *app) showNoSchedule(name string) error {
	return a.showTimer(store.Answer{Outcome: timer.NotFound, Key: name, At: time.Now().UTC()})
}

func (a *app) withSchedule(
	ctx context.Context, name, target string, do func(target string, s timer.State) error,
) error {
	return a.withTimers(ctx, func(ctx context.Context, timers *store.Timers) error {
		target, err := a.findTarget(ctx, timers, name, target)
		if err != nil {
			return err
		}
		s, err := readTimer(ctx, timers, name, target)
		if mayNotRead(ctx, timers) {
			return errMayNotRead
		}
		if err != nil {
			return err
		}
		actual := s.Entry.Request.Target
		if store.RecurringOf(s.Entry) == nil || target != "" && target != actual {
			return a.showNoSchedule(name)
		}
		return do(actual, s)
	})
}

// readTimer reads the state of a timer, within timersTimeout.
func readTimer(ctx context.Context, timers *store.Timers, name, target string) (timer.State, error) {
	limited, cancel := context.WithTimeout(ctx, timersTimeout)
	defer cancel()
	s, err := timers.Read(limited, name, target)
	return s, inspect.Cause(ctx, convertRefusal(err))
}

// scheduleView is the output of schedules show --json.
type scheduleView struct {
	Name       string    `json:"name"`
	Target     string    `json:"target"`
	Generation uint64    `json:"generation"`
	Due        time.Time `json:"due,omitzero"` // of the pending round
	First      time.Time `json:"first"`
	Last       time.Time `json:"last,omitzero"`
	Missed     string    `json:"missed"`
	Jitter     string    `json:"jitter,omitempty"`
	Rounds     int       `json:"rounds,omitempty"`
	*store.Recurring
	contentView
	inspect.Runs
	RunsProblem string `json:"runs_problem,omitempty"` // why the last runs are unknown
}

func (a *app) schedulesShowCommand() *cobra.Command {
	var target string
	var limit int
	c := &cobra.Command{
		Use:   "show NAME",
		Short: "Show one schedule, with its headers, its body and its last runs",
		Long: `Show one schedule, with its headers, its body and its last runs. With --json, the body is base64.

The runs are the rounds in the journal (DELAY_JOURNAL), delivered or dead letters. A round that the broker still retries
is not among them.

` + outcomeCodes,
		Example: "  delaybroker schedules show nightly --runs 20",
		Args:    argumentsBetween(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := a.withSchedule(cmd.Context(), args[0], target, func(target string, s timer.State) error {
				runs, problem := a.lastRuns(cmd, store.RecurringOf(s.Entry).Series, limit)
				a.showSchedule(args[0], target, s, runs, problem)
				return nil
			})
			if target == "" {
				return err
			}
			return a.fallBackToBroker(err, func() error {
				get := store.Change{Request: timer.Request{Verb: timer.Get}, Key: args[0], Target: target}
				return a.askTimer(cmd.Context(), get)
			})
		},
	}
	addCountFlag(c.Flags(), &limit, "runs", "", defaultRuns, 0, maxRuns, "number of last runs to show; 0 for none")
	addTargetFlag(c, &target)
	return c
}

func (a *app) showSchedule(name, target string, s timer.State, runs inspect.Runs, runsProblem error) {
	recurring, r := store.RecurringOf(s.Entry), s.Entry.Request
	table := recurring.Definition.Table
	v := scheduleView{
		Name: name, Target: target, Generation: s.Sequence, Due: r.Due, First: recurring.Definition.First, Last: table.Last,
		Missed: string(table.Missed), Rounds: table.Rounds, Recurring: recurring,
		contentView: contentView{Size: len(s.Message.Data), Headers: r.User, Payload: s.Message.Data}, Runs: runs,
	}
	if table.Jitter > 0 {
		v.Jitter = levels.FormatDuration(table.Jitter)
	}
	if runsProblem != nil {
		v.RunsProblem = runsProblem.Error()
	}
	if a.AsJSON(v) {
		return
	}
	t, line := a.properties()
	line("name", name, true)
	line("target", target, true)
	line("recurs", v.Table, true)
	line("state", formatRound(recurring), true)
	line("due", text.Moment(v.Due), !v.Due.IsZero())
	line("first", text.Moment(v.First), true)
	line("last", text.Moment(v.Last), !v.Last.IsZero())
	line("rounds", strconv.Itoa(v.Rounds), v.Rounds > 0)
	line("missed", v.Missed, true)
	line("jitter", v.Jitter, v.Jitter != "")
	line("set", v.Set, v.Set != "")
	line("series", strconv.FormatUint(v.Series, 10), true)
	line("generation", strconv.FormatUint(v.Generation, 10), true)
	for _, name := range slices.Sorted(maps.Keys(r.User)) {
		line("header", name+": "+strings.Join(r.User[name], ", "), true)
	}
	t.Print()
	a.showBody(s.Message.Data)
	a.showRuns(v.Runs, runsProblem)
}

// formatRound formats the state of a series.
func formatRound(r *store.Recurring) string {
	if r.Paused {
		return fmt.Sprintf("paused, before round %d", r.Round)
	}
	return fmt.Sprintf("pending, round %d", r.Round)
}
