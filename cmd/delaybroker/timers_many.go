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

// manyTimers has the flags that select timers.
type manyTimers struct {
	target, key    string
	dueFrom, dueTo time.Time
	all, dryRun    bool
	state          string
	after          uint64
	limit          int
}

func (o *manyTimers) flags(c *cobra.Command) {
	f := c.Flags()
	patternFlag(f, &o.target, "target", "only to this target; wildcards as in 'orders.>'")
	f.StringVar(&o.key, "key", "", "only with this key; * for any characters, as in 'order-*'")
	momentFlag(f, &o.dueFrom, "due-from", "only due at this time or later: RFC 3339")
	momentFlag(f, &o.dueTo, "due-to", "only due before this time: RFC 3339")
}

func (o *manyTimers) bulkFlags(c *cobra.Command) {
	o.flags(c)
	c.Flags().BoolVar(&o.all, "all", false, "all timers that match --target and --key, instead of one")
	c.Flags().BoolVar(&o.dryRun, "dry-run", false, "with --all: only count the timers")
}

// filter returns the filter of the flags.
func (o manyTimers) filter() store.Filter {
	f := store.Filter{Key: o.key, DueFrom: o.dueFrom, DueTo: o.dueTo}
	if o.target != "" {
		f.Targets = []string{o.target}
	}
	return f
}

// usageOf returns a usage error if the broker refused a request for its arguments.
func usageOf(err error) error {
	if refused := (*store.Refusal)(nil); errors.As(err, &refused) && refused.Code == 400 {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	return err
}

func (a *app) timersCancelCommand() *cobra.Command {
	var one oneTimer
	var many manyTimers
	c := &cobra.Command{
		Use:   "cancel (KEY TARGET | --all --target PATTERN)",
		Short: "Cancel one timer, or all that match",
		Long: `Cancel one timer, or all that match. A timer with the outcome cancelled is never delivered.

` + outcomeCodes,
		Example: `  delaybroker timers cancel order-42 orders.expire
  delaybroker timers cancel --all --target 'orders.>' --key 'order-*' --dry-run`,
		Args: argumentsBetween(0, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch ok, err := many.wanted(args); {
			case err != nil:
				return err
			case ok:
				return a.manyTimers(cmd, many, store.Bulk{Verb: timer.Cancel})
			}
			return a.oneTimer(cmd, one.wish(timer.Cancel, args))
		},
	}
	one.flags(c)
	many.bulkFlags(c)
	return c
}

func (a *app) timersMoveCommand() *cobra.Command {
	var one oneTimer
	var many manyTimers
	var to moveTo
	c := &cobra.Command{
		Use:   "move (KEY TARGET | --all --target PATTERN) (--in DURATION | --at TIME | --by DURATION)",
		Short: "Move one timer to another time, or shift all that match",
		Long: `Move one timer to another time, or shift all that match. The body and the headers are kept, the
generation is new.
Of a schedule, only the pending round is moved. The following rounds keep their times.

` + outcomeCodes,
		Example: `  delaybroker timers move order-42 orders.expire --in 15m
  delaybroker timers move --all --target 'orders.>' --by +5m --dry-run`,
		Args: argumentsBetween(0, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			all, err := many.wanted(args)
			if err != nil {
				return err
			}
			w, err := to.wish(all)
			if err != nil {
				return err
			}
			if all {
				return a.manyTimers(cmd, many, store.Bulk{Verb: timer.Move, By: w.By})
			}
			about := one.wish(timer.Move, args)
			w.Request, w.Key, w.Target = about.Request, about.Key, about.Target
			return a.oneTimer(cmd, w)
		},
	}
	one.flags(c)
	many.bulkFlags(c)
	c.Flags().StringVar(&to.in, "in", "", "due after a duration: 15m, 1h30m, 1500ms")
	c.Flags().StringVar(&to.at, "at", "", "due at a time: RFC 3339 with a zone")
	c.Flags().StringVar(&to.by, "by", "", "shift of the due time, later or earlier: +5m, -5m")
	return c
}

// wanted reports whether --all is given, and whether the arguments fit.
func (o manyTimers) wanted(args []string) (all bool, err error) {
	switch {
	case o.all && len(args) == 0 && o.target != "":
		return true, nil
	case o.all:
		return false, fmt.Errorf("%w: --all needs --target and excludes KEY TARGET; '>' means every target", errUsage)
	case len(args) != 2:
		return false, fmt.Errorf("%w: want KEY TARGET, or --all --target PATTERN", errUsage)
	case o.target != "" || o.key != "" || !o.dueFrom.IsZero() || !o.dueTo.IsZero() || o.dryRun:
		return false, fmt.Errorf("%w: --target, --key, --due-from, --due-to and --dry-run need --all", errUsage)
	}
	return false, nil
}

// moveTo is the requested time of a move: one of the three is set.
type moveTo struct{ in, at, by string }

func (m moveTo) wish(all bool) (w store.Change, err error) {
	switch {
	case all && (m.by == "" || m.in != "" || m.at != ""):
		return w, fmt.Errorf("%w: --all needs --by, and excludes --in and --at", errUsage)
	case given(m.in, m.at, m.by) != 1:
		return w, fmt.Errorf("%w: want one of --in, --at and --by", errUsage)
	case m.in != "":
		if _, err := levels.ParseDuration(m.in); err != nil {
			return w, fmt.Errorf("%w: --in: %w", errUsage, err)
		}
		w.For = m.in
	case m.at != "":
		if w.Until, err = zoned("--at", m.at); err != nil {
			return w, err
		}
	default:
		if w.By, err = store.ParseShift(m.by); err != nil {
			return w, fmt.Errorf("%w: --by: %w", errUsage, err)
		}
	}
	return w, nil
}

// manyTimers changes all timers that match. A series or a schedule may need the brokers' secret. If the first pass has
// left some for that reason, a second pass changes them, except generations set since.
func (a *app) manyTimers(cmd *cobra.Command, o manyTimers, b store.Bulk) error {
	b.Filter, b.DryRun, b.Page.Limit = o.filter(), o.dryRun, store.MaxLimit
	var all store.Done
	err := a.withTimers(cmd.Context(), func(ctx context.Context, timers *store.Timers) (err error) {
		if all, err = changeTimers(ctx, timers.Bulk, b); all.Matched == 0 && mayNotRead(ctx, timers) {
			return errMayNotRead
		}
		return err
	})
	err = a.orAsk(err, func() (err error) {
		all, err = changeTimers(cmd.Context(), a.askBulk, b)
		return err
	})
	if err == nil && all.Sealed {
		b.Page.UpTo = all.UpTo
		err = a.withSecrets(cmd, func(ctx context.Context, timers *store.Timers) error {
			rest, err := changeTimers(ctx, timers.Bulk, b)
			rest.Matched, all.Refused, all.Why = 0, 0, "" // the first pass has counted them
			all.Add(rest)
			return err
		})
	}
	return a.reportMany(all, b.Verb, err)
}

// aBulk changes a page of timers: [store.Timers.Bulk], or askBulk.
type aBulk func(context.Context, store.Bulk) (store.Done, error)

// changeTimers changes page by page, until the last one or until ctx ends.
func changeTimers(ctx context.Context, bulk aBulk, b store.Bulk) (all store.Done, err error) {
	for {
		d, err := bulk(ctx, b)
		if err != nil {
			return all, inspect.Cause(ctx, usageOf(err))
		}
		all.Add(d)
		if d.Next == 0 || ctx.Err() != nil {
			return all, nil
		}
		b.Page.After, b.Page.UpTo = d.Next, d.UpTo
	}
}

// reportMany prints the result. It returns err, or the first refusal, or an outcome other than success.
func (a *app) reportMany(all store.Done, verb timer.Verb, err error) error {
	if err == nil || all.Matched > 0 {
		a.showMany(all, verb)
	}
	if err != nil {
		return err
	}
	if all.Refused > 0 {
		refused, why := terminal.Counted(all.Refused, "timer"), text.Printable(all.Why, 600)
		return fmt.Errorf("%s refused, the first: %s", refused, why)
	}
	for _, what := range []timer.Outcome{timer.Unknown, timer.Conflict, timer.TooLate, timer.NotFound} {
		if all.Outcomes[what] > 0 {
			return logged{outcomeError{what}}
		}
	}
	return nil
}

func (a *app) showMany(d store.Done, verb timer.Verb) {
	if a.AsJSON(d) {
		return
	}
	if d.DryRun {
		a.Printf("%s would be %s\n", terminal.Counted(d.Matched-d.Refused, "timer"),
			map[timer.Verb]timer.Outcome{timer.Cancel: timer.Cancelled, timer.Move: timer.Moved}[verb])
		return
	}
	var words []string
	for _, what := range []timer.Outcome{timer.Cancelled, timer.Moved, timer.TooLate, timer.Conflict, timer.NotFound,
		timer.Unknown} {
		if n := d.Outcomes[what]; n > 0 {
			words = append(words, fmt.Sprintf("%d %s", n, what))
		}
	}
	if d.Refused > 0 {
		words = append(words, fmt.Sprintf("%d refused", d.Refused))
	}
	a.Printf("%s: %s\n", terminal.Counted(d.Matched, "timer"), cmp.Or(strings.Join(words, ", "), "none"))
}
