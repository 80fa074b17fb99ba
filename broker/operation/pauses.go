package operation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dustin/go-humanize/english"

	"delaybroker/broker/inspect"
	"delaybroker/broker/pause"
	"delaybroker/broker/text"
)

var pauseOperations = []Operation{
	{
		Name: "pauses", Command: "pause", Noun: "pattern", New: listPauses, Hidden: true,
		Short: "List the paused patterns",
		Columns: []Column{
			{Name: "target pattern", Field: "pattern", Min: 10}, {Name: "state", Field: "state", Kind: State},
			{Name: "unproven", Field: "unproven", Rare: true}, {Name: "since", Field: "since", Kind: Time, Drop: 1},
			{Name: "waiting", Field: "waiting", Kind: Number},
			{Name: "quiet hours", Field: "hours", Rare: true, Min: 12, Wrap: true},
		},
		Actions: []Action{
			{
				Operation: "resume", With: map[string]string{"pattern": "pattern"},
				States: []string{string(pause.Paused), string(pause.Open)},
			},
		},
	},
	{
		Name: "pause", Noun: "target", Label: "Pause", Done: "paused", New: changePause(true), Words: []string{"pattern"},
		Usage: "[PATTERN]", Without: "pauses",
		Short: "Pause the targets of a pattern, or list the paused patterns",
		Long: `Pause the targets of a pattern. Messages that become due for these targets wait in the streams until the
pattern is resumed, even if brokers restart. The wait does not count as an attempt. When the command succeeds, every
running instance has confirmed the pause, and sends nothing to these targets. A broker that starts later observes the
pause too.

Patterns may overlap: a target is paused while at least one paused pattern matches it. A pause does not extend
Delay-Expires, which is checked when the target is resumed.

With --daily, the targets are paused in quiet hours only, every day or on the --days on which the hours begin. Messages
that become due in the hours go out afterwards, in the order of their due times. When the clock changes, the hours
begin and end like a cron. The resume command ends the pause with its hours.

Without a pattern, the command lists the paused patterns with their times and the number of waiting messages.

exit codes: 0 done, 1 failed, or some instances have not confirmed the stored change, 2 bad arguments or settings`,
		Example: `  delaybroker pause 'orders.>'
  delaybroker pause 'mail.>' --daily 22:00-08:00 --tz Europe/Berlin --days mon-fri
  delaybroker pause --json`,
	},
	{
		Name: "resume", Noun: "target", Label: "Resume", Done: "resumed", New: changePause(false),
		Words: []string{"pattern"}, Least: 1, Usage: "PATTERN",
		Short: "Resume the targets of a paused pattern",
		Long: `Resume the targets of a paused pattern. The waiting messages are delivered in the order of their due times, as
fast as the targets and DELAY_RATE allow. Messages that become due meanwhile follow them.

Give the pattern exactly as it was paused. If another paused pattern matches some of the targets, their messages
continue to wait.

exit codes: 0 done, 1 failed, or the pattern is not paused, or some instances have not confirmed the stored change, 2
bad arguments or settings`,
		Example: `  delaybroker resume 'orders.>'`,
	},
}

func listPauses(Bounds) *Use {
	return &Use{Look: func(ctx context.Context, d *Desk, show func(any) error) (End, error) {
		pauses, err := d.Pauses(ctx)
		if err != nil {
			return End{}, err
		}
		return End{Empty: "no pattern is paused"}, showAll(pauses, 0, show)
	}}
}

// pauseReads is the maximum number of headers that are read to count the messages of a pattern.
const pauseReads = 50_000

func changePause(pausing bool) func(Bounds) *Use {
	return func(Bounds) *Use {
		var target, daily, zone, days string
		var hours pause.Hours
		p := Parsed(&target, "pattern", "the pattern of targets", ParsePattern)
		p.Names, p.Field, p.Hint = "target", true, "orders.>"
		if !pausing {
			p.Names = "pause"
		}
		u := &Use{Params: []*Param{p}, Check: func() error {
			if target == "" {
				return invalid("want a pattern of targets")
			}
			var err error
			if daily != "" {
				hours, err = pause.ParseHours(daily, zone, days)
			} else if zone+days != "" {
				err = errors.New("--tz and --days are for quiet hours: give --daily, too")
			}
			if err != nil {
				return invalid("%v", err)
			}
			return nil
		}}
		if pausing {
			u.Params = append(u.Params, word(&daily, "daily", "quiet hours, as in 22:00-08:00: pause only then"),
				word(&zone, "tz", "with --daily: the time zone, such as Europe/Berlin (default: UTC)"),
				word(&days, "days",
					"with --daily: the days on which the hours begin, as in a cron, such as mon-fri (default: all)"))
		}
		u.Plan = func(ctx context.Context, d *Desk) (Plan, error) {
			pauses, err := d.Pauses(ctx)
			if err != nil {
				return Plan{}, err
			}
			index := slices.IndexFunc(pauses, func(p inspect.Pause) bool { return p.Pattern == target })
			isPaused := index >= 0 && (pauses[index].State == pause.Paused || pauses[index].State == pause.Open)
			switch {
			case pausing && isPaused && pauses[index].Hours.String() == hours.String():
				return planOf(0, "the pattern is already paused"), nil
			case !pausing && !isPaused:
				return planOf(0, "the pattern is not paused: resume the exact pattern of a pause"), nil
			case !pausing:
				return planOf(1, fmt.Sprintf("resume %s: %s now waiting will be delivered", target,
					english.Plural(int(*pauses[index].Waiting), "message", ""))), nil
			}
			n, err := countPending(ctx, d, target)
			p := planOf(1, fmt.Sprintf("pause %s: %s now pending, and all later messages, will wait when due", target,
				english.Plural(int(n), "message", "")))
			if n == 0 {
				p.Notes = []string{nothingPaused(target)}
			}
			return p, err
		}
		u.Act = func(ctx context.Context, d *Desk) (Result, error) {
			state := "is paused"
			change := func(ctx context.Context, target string) (inspect.PauseChange, error) {
				return d.Pause(ctx, target, hours)
			}
			switch {
			case !pausing:
				change, state = d.Resume, "is resumed: the waiting messages are delivered"
			case !hours.IsZero():
				state += " in the hours " + hours.String()
			}
			c, err := change(ctx, target)
			if err != nil && !errors.Is(err, inspect.ErrUnconfirmed) {
				return Result{}, fmt.Errorf("%s: %w", target, err)
			}
			r := Result{Value: c, Good: err == nil && c.NotStored == ""}
			r.Sentence = fmt.Sprintf("%s %s; confirmed by %d of %s", target, state, len(c.Confirmed),
				english.Plural(len(c.Confirmed)+len(c.Unconfirmed), "instance", ""))
			if c.NotStored != "" {
				r.Notes = append(r.Notes,
					"the change is not stored yet; the instances will store it when possible: "+text.Sentence(c.NotStored))
			}
			if len(c.Confirmed)+len(c.Unconfirmed) == 0 {
				r.Sentence = target + " " + state
				r.Notes = append(r.Notes, "no broker runs; a broker that starts will apply the change")
			}
			if err != nil {
				return r, fmt.Errorf("%s: the change was announced, but %w", target, err)
			}
			if n, err := countPending(ctx, d, target); pausing && !d.Brief && err == nil && n == 0 {
				r.Notes = append(r.Notes, nothingPaused(target))
			}
			return r, nil
		}
		return u
	}
}

func planOf(count uint64, sentence string) Plan {
	return Plan{Count: count, Sentence: sentence, Result: Result{Sentence: sentence, Good: count > 0}}
}

// countPending returns the number of pending messages of a pattern, approximately if there are many.
func countPending(ctx context.Context, d *Desk, target string) (uint64, error) {
	f, err := d.Forecast(ctx, inspect.ForecastQuery{
		Length: time.Hour, Step: time.Hour, Target: target, MaxRead: pauseReads,
	})
	return f.Pending, err
}

// nothingPaused warns about a pattern that matches no pending message, such as orders in place of orders.>.
func nothingPaused(target string) string {
	warning := "no pending message has a target that matches " + target
	if last := target[len(target)-1]; last != '>' && last != '*' {
		warning += fmt.Sprintf(": for all targets below it, the pattern is '%s.>'", target)
	}
	return warning
}
