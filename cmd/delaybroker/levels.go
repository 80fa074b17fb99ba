package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"
)

func (a *app) levelsCommand() *cobra.Command {
	var every time.Duration
	c := &cobra.Command{
		Use:   "levels",
		Short: "Show the lanes: what is pending, what is due next, who reads",
		Long: `Show the lanes, one stream each, and the dead letters.

head due in  until the first message is due at its target
overdue      since the first message should have left the lane
owner        read: a broker reads it; nobody; later: the broker holds all it may, and reads on when some of it is due;
             and which instance it is, where several share the work
state        serving; retiring (not in DELAY_LEVELS, takes no new messages, may be deleted when nothing is pending);
             full (a limit of the stream is reached); missing; foreign (a stream of that name is none of ours); newer format
             (of a newer broker); no answer`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			return a.levels(ctx, every)
		},
	}
	c.Flags().DurationVar(&every, "watch", 0, "show them again and again, until interrupted")
	c.Flags().Lookup("watch").NoOptDefVal = "2s"
	return c
}

// levels shows the lanes once or, when every is set, until ctx ends.
func (a *app) levels(ctx context.Context, every time.Duration) error {
	o, err := a.operate(ctx)
	if err != nil {
		return err
	}
	defer o.close()
	for {
		asking, cancel := o.allowed(ctx)
		v, err := o.look(asking)
		err = because(asking, err)
		cancel()
		if ctx.Err() != nil && every > 0 {
			return nil
		}
		if err != nil {
			return err
		}
		if every > 0 && isTerminal(a.stdout) && !a.json {
			fmt.Fprint(a.stdout, "\x1b[H\x1b[2J") // home, clear
		}
		if err := a.showLevels(v); err != nil || every <= 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(every):
		}
	}
}

func (a *app) showLevels(v lanesView) error {
	if a.json {
		return a.printJSON(v)
	}
	t := a.table()
	t.AppendHeader(row("lane", "delay", "pending", "head due in", "overdue", "owner", "state", "stream"))
	for _, l := range v.Lanes {
		t.AppendRow(l.row(v.Time))
	}
	t.AppendFooter(row("total", "", v.Totals.Pending, "", dashed(v.Totals.Overdue),
		fmt.Sprintf("%d unread", v.Totals.Unread), "", fmt.Sprintf("%d dead letters", v.Totals.Dead)))
	t.Render()
	return nil
}

func (l laneView) row(now time.Time) table.Row {
	delay, due := cmp.Or(l.Level, "-"), "-"
	switch {
	case l.HeadDead != "":
		due = "dead: " + l.HeadDead
	case !l.HeadDue.IsZero() && l.HeadDue.After(now):
		due = span(l.HeadDue.Sub(now))
	case !l.HeadDue.IsZero():
		due = "now"
	}
	return row(string(l.Kind), delay, l.Pending, due, dashed(l.Overdue), l.owner(), l.State, l.Stream)
}

func (l laneView) owner() string {
	if l.Instance == "" {
		return cmp.Or(l.Owner, "-")
	}
	return l.Owner + ": " + l.Instance
}

func dashed(seconds float64) string {
	if seconds == 0 {
		return "-"
	}
	return span(time.Duration(seconds * float64(time.Second)))
}
