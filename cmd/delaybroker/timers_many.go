package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"delaybroker/broker/inspect"
	"delaybroker/broker/text"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/store"
	"delaybroker/cmd/delaybroker/terminal"
	"delaybroker/levels"
)

// timerSelection has the flags that select timers.
type timerSelection struct {
	target, key    string
	dueFrom, dueTo time.Time
	once           bool
	all, dryRun    bool
	state          string
	after          uint64
	limit          int
}

func (o *timerSelection) addFlags(c *cobra.Command) {
	f := c.Flags()
	addPatternFlag(f, &o.target)
	f.StringVar(&o.key, "key", "", "only with this key; * for any characters, as in 'order-*'")
	addTimeFlag(f, &o.dueFrom, "due-from", "only due at this time (RFC 3339) or later")
	addTimeFlag(f, &o.dueTo, "due-to", "only due before this time (RFC 3339)")
	f.BoolVar(&o.once, "once", false, "only timers that do not recur")
}

func (o *timerSelection) addBulkFlags(c *cobra.Command) {
	o.addFlags(c)
	c.Flags().BoolVar(&o.all, "all", false, "change all timers that match the other flags, instead of one")
	c.Flags().BoolVar(&o.dryRun, "dry-run", false, "with --all: only count the timers")
}

func (o timerSelection) filter() store.Filter {
	f := store.Filter{Key: o.key, DueFrom: o.dueFrom, DueTo: o.dueTo, OneShot: o.once}
	if o.target != "" {
		f.Targets = []string{o.target}
	}
	return f
}

// convertRefusal returns a usage error if err is a refusal of a request's arguments, and err otherwise.
func convertRefusal(err error) error {
	if refusal, ok := errors.AsType[*store.Refusal](err); ok && refusal.Code == 400 {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	return err
}

func (a *app) timersCancelCommand() *cobra.Command {
	var single timerFlags
	var selection timerSelection
	c := &cobra.Command{
		Use:   "cancel (KEY TARGET | --all --target PATTERN)",
		Short: "Cancel one timer, or all that match",
		Long: `Cancel one timer, or all that match. A timer with the outcome cancelled is never delivered. With --all, some
timers may be cancelled although the exit code is not 0: the output has the number of each outcome.

` + outcomeCodes,
		Example: `  delaybroker timers cancel order-42 orders.expire
  delaybroker timers cancel --all --target 'orders.>' --key 'order-*' --dry-run`,
		Args: argumentsBetween(0, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch ok, err := selection.selectsMany(args); {
			case err != nil:
				return err
			case ok:
				return a.executeBulk(cmd, selection, store.Bulk{Verb: timer.Cancel})
			}
			return a.executeChange(cmd, single.change(timer.Cancel, args))
		},
	}
	single.addFlags(c)
	selection.addBulkFlags(c)
	return c
}

func (a *app) timersMoveCommand() *cobra.Command {
	var single timerFlags
	var selection timerSelection
	var move moveFlags
	c := &cobra.Command{
		Use:   "move (KEY TARGET | --all --target PATTERN) (--in DURATION | --at TIME | --by DURATION)",
		Short: "Move one timer to another time, or shift all that match",
		Long: `Move one timer to another time, or shift all that match. A moved timer keeps its body and headers, and gets a
new generation. A move of a schedule moves only the pending round. The following rounds keep their times. With --all,
some timers may be moved although the exit code is not 0: the output has the number of each outcome.

` + outcomeCodes,
		Example: `  delaybroker timers move order-42 orders.expire --in 15m
  delaybroker timers move --all --target 'orders.>' --by +5m --dry-run`,
		Args: argumentsBetween(0, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			all, err := selection.selectsMany(args)
			if err != nil {
				return err
			}
			change, err := move.change(all)
			if err != nil {
				return err
			}
			if all {
				return a.executeBulk(cmd, selection, store.Bulk{Verb: timer.Move, By: change.By})
			}
			base := single.change(timer.Move, args)
			change.Request, change.Key, change.Target = base.Request, base.Key, base.Target
			return a.executeChange(cmd, change)
		},
	}
	single.addFlags(c)
	selection.addBulkFlags(c)
	c.Flags().StringVar(&move.in, "in", "", "due after a duration: 15m, 1h30m, 1500ms")
	c.Flags().StringVar(&move.at, "at", "", "due at a time: RFC 3339 with a zone")
	c.Flags().StringVar(&move.by, "by", "", "due later or earlier by a duration: +5m, -5m")
	return c
}

// selectsMany reports whether --all is given. It returns an error if the other flags or arguments do not fit.
func (o timerSelection) selectsMany(args []string) (all bool, err error) {
	switch {
	case o.all && len(args) == 0 && o.target != "":
		return true, nil
	case o.all:
		return false, fmt.Errorf("%w: --all needs --target and excludes KEY TARGET; '>' means every target", errUsage)
	case len(args) != 2:
		return false, fmt.Errorf("%w: want KEY TARGET, or --all --target PATTERN", errUsage)
	case o.target != "" || o.key != "" || !o.dueFrom.IsZero() || !o.dueTo.IsZero() || o.once || o.dryRun:
		return false, fmt.Errorf("%w: --target, --key, --due-from, --due-to, --once and --dry-run need --all", errUsage)
	}
	return false, nil
}

// moveFlags has the requested time of a move. The method change checks that exactly one field is not empty.
type moveFlags struct{ in, at, by string }

func (m moveFlags) change(all bool) (change store.Change, err error) {
	switch {
	case all && (m.by == "" || m.in != "" || m.at != ""):
		return change, fmt.Errorf("%w: --all needs --by, and excludes --in and --at", errUsage)
	case countGiven(m.in, m.at, m.by) != 1:
		return change, fmt.Errorf("%w: want one of --in, --at and --by", errUsage)
	case m.in != "":
		if _, err := levels.ParseDuration(m.in); err != nil {
			return change, fmt.Errorf("%w: --in: %w", errUsage, err)
		}
		change.For = m.in
	case m.at != "":
		if change.Until, err = parseTime("--at", m.at); err != nil {
			return change, err
		}
	default:
		if change.By, err = store.ParseShift(m.by); err != nil {
			return change, fmt.Errorf("%w: --by: %w", errUsage, err)
		}
	}
	return change, nil
}

// executeBulk changes all timers that match. A change of a series or of a schedule in nats-server's format may need the
// brokers' secret. If the first pass could not change a timer for lack of the secret, a second pass has the secret. It
// changes only generations that existed before the first pass, so it moves no timer twice.
func (a *app) executeBulk(cmd *cobra.Command, o timerSelection, b store.Bulk) error {
	b.Filter, b.DryRun, b.Page.Limit = o.filter(), o.dryRun, store.MaxLimit
	var total store.BulkResult
	err := a.withTimers(cmd.Context(), func(ctx context.Context, timers *store.Timers) (err error) {
		if total, err = changeTimers(ctx, timers.Bulk, b); total.Matched == 0 && mayNotRead(ctx, timers) {
			return errMayNotRead
		}
		return err
	})
	err = a.fallBackToBroker(err, func() (err error) {
		total, err = changeTimers(cmd.Context(), a.askBulk, b)
		return err
	})
	if err == nil && total.Sealed {
		b.Page.UpTo = total.UpTo
		err = a.withSecrets(cmd, func(ctx context.Context, timers *store.Timers) error {
			second, err := changeTimers(ctx, timers.Bulk, b)
			// The first pass has counted the matches, and the second counts the refusals again.
			second.Matched, total.Refused, total.Why = 0, 0, ""
			total.Add(second)
			return err
		})
	}
	return a.reportBulk(total, b.Verb, err)
}

// bulkFunc changes a page of timers: [store.Timers.Bulk], or askBulk.
type bulkFunc func(context.Context, store.Bulk) (store.BulkResult, error)

// changeTimers changes the timers page by page, until the last page, until an error, or until ctx ends.
func changeTimers(ctx context.Context, bulk bulkFunc, b store.Bulk) (total store.BulkResult, err error) {
	for {
		page, err := bulk(ctx, b)
		if err != nil {
			return total, inspect.Cause(ctx, convertRefusal(err))
		}
		total.Add(page)
		if page.Next == 0 {
			return total, nil
		}
		if err := ctx.Err(); err != nil {
			return total, inspect.Cause(ctx, err)
		}
		b.Page.Start, b.Page.UpTo = page.Next, page.UpTo
	}
}

// reportBulk prints the result. It returns err unless that is nil, otherwise an error with the first refusal, and
// otherwise the worst outcome other than success.
func (a *app) reportBulk(total store.BulkResult, verb timer.Verb, err error) error {
	if err == nil || total.Matched > 0 {
		a.printBulk(total, verb)
	}
	if err != nil {
		return err
	}
	if total.Refused > 0 {
		count, why := terminal.Counted(total.Refused, "timer"), text.Printable(total.Why, 600)
		return fmt.Errorf("%s refused, the first: %s", count, why)
	}
	for _, outcome := range []timer.Outcome{timer.Unknown, timer.Conflict, timer.TooLate, timer.NotFound} {
		if total.Outcomes[outcome] > 0 {
			return reportedError{outcomeError{outcome}}
		}
	}
	return nil
}

func (a *app) printBulk(d store.BulkResult, verb timer.Verb) {
	if a.AsJSON(d) {
		return
	}
	if d.DryRun {
		a.Printf("%s would be %s\n", terminal.Counted(d.Matched-d.Refused, "timer"),
			map[timer.Verb]timer.Outcome{timer.Cancel: timer.Cancelled, timer.Move: timer.Moved}[verb])
		return
	}
	var words []string
	for _, outcome := range []timer.Outcome{timer.Cancelled, timer.Moved, timer.TooLate, timer.Conflict, timer.NotFound,
		timer.Unknown} {
		if n := d.Outcomes[outcome]; n > 0 {
			words = append(words, fmt.Sprintf("%d %s", n, outcome))
		}
	}
	if d.Refused > 0 {
		words = append(words, fmt.Sprintf("%d refused", d.Refused))
	}
	a.Printf("%s: %s\n", terminal.Counted(d.Matched, "timer"), cmp.Or(strings.Join(words, ", "), "none"))
}
