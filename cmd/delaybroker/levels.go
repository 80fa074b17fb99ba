package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"delaybroker/broker/inspect"
	"delaybroker/broker/text"
	"delaybroker/cmd/delaybroker/terminal"
)

// defaultWatch is the interval of --watch without a duration.
const defaultWatch = "2s"

// levelsOptions are the flags of levels.
type levelsOptions struct {
	every time.Duration // zero without --watch
	all   bool          // show idle lanes too
}

func (a *app) levelsCommand() *cobra.Command {
	var o levelsOptions
	c := &cobra.Command{
		Use:   "levels",
		Short: "Show the lanes: pending and overdue messages, and owners",
		Long: `Show the lanes and the number of dead letters. Each row is one stream; the lanes of pauses share one. An idle
lane is empty, and has neither traffic nor a problem. Without --all, the command only counts idle lanes.

head due in  time until the first message is due at its target
overdue      time since the first message should have left the lane
owner        the instance that reads the lane
             later: the memory of this instance is full, or has all messages that are due soon
             stopped: this instance cannot read the lane now
             nobody: no instance owns the lane
             unknown: the instances do not answer, or this user may not ask them
state        serving
             retiring: not in DELAY_LEVELS; takes no new messages, and may be deleted when it is empty
             full: a limit of the stream is reached
             waits for a newer broker: its owner cannot read its messages
             missing: the stream does not exist
             foreign: another program's stream has the name
             newer format: a newer broker created the stream
             broken marks: the metadata of the stream is invalid
             no answer: the server did not answer about the stream
in/s, out/s  messages a second that entered and left the lane since the previous update, with --watch`,
		Example: `  delaybroker levels --watch
  delaybroker levels --watch=500ms --all`,
		Args: func(cmd *cobra.Command, args []string) error { return o.parseWatch(cmd, args) },
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withInspector(cmd, func(ctx context.Context, i *inspect.Inspector) error { return a.levels(ctx, i, o) })
		},
	}
	c.Flags().DurationVar(&o.every, "watch", 0, "update the lanes at this interval, until interrupted")
	c.Flags().Lookup("watch").NoOptDefVal = defaultWatch
	c.Flags().BoolVar(&o.all, "all", false, "show idle lanes too")
	return c
}

// parseWatch accepts "--watch 1s" like "--watch=1s". In the first form, cobra parses 1s as an argument, since the
// flag's value is optional.
func (o *levelsOptions) parseWatch(cmd *cobra.Command, args []string) error {
	watch := cmd.Flags().Lookup("watch")
	if len(args) == 1 && watch.Changed && watch.Value.String() == defaultWatch {
		if every, err := time.ParseDuration(args[0]); err == nil {
			o.every, args = every, nil
		}
	}
	if watch.Changed && o.every <= 0 {
		return fmt.Errorf("%w: --watch=%s: want more than 0, such as 2s", errUsage, o.every)
	}
	return noArguments(cmd, args)
}

func (a *app) levels(ctx context.Context, i *inspect.Inspector, options levelsOptions) error {
	if options.every > 0 {
		return a.watchLevels(ctx, i, options)
	}
	v, err := i.Lanes(ctx, inspect.MaxHandover)
	if err != nil {
		return err
	}
	a.showLevels(v, options)
	return nil
}

// watchLevels shows the lanes until ctx ends, or until the output fails. It does not wait for the end of a handover:
// the next update shows the new owner.
func (a *app) watchLevels(ctx context.Context, i *inspect.Inspector, options levelsOptions) error {
	_, _, isScreen := terminal.Size(a.Out)
	if isScreen = isScreen && !a.JSON; isScreen {
		// The alternate screen keeps the previous text, and does not fill the scrollback.
		a.Printf("\x1b[?1049h\x1b[?25l") // also hides the cursor
		defer a.Printf("\x1b[?25h\x1b[?1049l")
	}
	var previous inspect.Lanes
	for {
		v, err := i.Lanes(ctx, 0)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		v.SetRates(previous)
		previous = v
		if isScreen {
			a.Printf("\x1b[H\x1b[2J") // home, clear
		}
		if a.showLevels(v, options); a.Failure() != nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(options.every):
		}
	}
}

func (a *app) showLevels(v inspect.Lanes, options levelsOptions) {
	if a.AsJSON(v) {
		return
	}
	dropState := 2
	if !slices.ContainsFunc(v.Lanes, func(l inspect.Lane) bool { return l.State != inspect.Serving }) {
		dropState = 6 // a narrow terminal loses this column first, because all states are the same
	}
	s := a.Sheet([]terminal.Column{
		{Name: "lane"}, {Name: "delay"}, {Name: "pending"},
		{Name: "head due in", Drop: 3, Min: 6},
		{Name: "overdue", Drop: 1}, {Name: "in/s", Drop: 2}, {Name: "out/s", Drop: 2},
		{Name: "owner", Min: 16}, {Name: "state", Drop: dropState, Min: 7},
		{Name: "stream", Drop: 5}, // the columns lane and delay have the same information
	})
	watched := options.every > 0
	if !watched {
		s.Hide("in/s", "out/s")
	}
	maxRows := len(v.Lanes)
	if _, height, ok := terminal.Size(a.Out); ok && watched {
		const otherLines = 9 // lines for borders, headers, the footer, the text below it, and the cursor
		maxRows = max(1, height-otherLines)
	}
	idle, hidden := 0, 0
	for _, l := range v.Lanes {
		switch {
		case !options.all && l.Idle():
			idle++
		case s.Len() == maxRows:
			hidden++
		default:
			s.Add(laneCells(l, v.Time)...)
		}
	}
	s.SetFooter("total", "", fmt.Sprint(v.Totals.Pending), "", text.Seconds(v.Totals.Overdue), "", "",
		fmt.Sprintf("%d unread", v.Totals.UnreadLanes), "", fmt.Sprintf("%d dead letters", v.Totals.Dead))
	s.Print()
	a.printPaused(v.Paused)
	if idle > 0 {
		a.Printf("%s; --all shows them\n", terminal.Counted(idle, "idle lane"))
	}
	if hidden > 0 {
		a.Printf("%s not shown, for lack of room\n", terminal.Counted(hidden, "more lane"))
	}
}

func laneCells(l inspect.Lane, now time.Time) []any {
	delay, owner := cmp.Or(l.Level, "-"), cmp.Or(string(l.Owner), "-")
	switch {
	case l.Instance == "":
	case l.Owner == "", l.Owner == inspect.OwnerReads: // Owner is empty in the row of the pauses
		owner = l.Instance
	default:
		owner += ": " + l.Instance
	}
	return []any{
		string(l.Kind), delay, l.Pending, formatDueIn(l.HeadDeadCode, l.HeadDue, now), text.Seconds(l.Overdue),
		formatRate(l.InRate), formatRate(l.OutRate), owner, string(l.State), l.Stream,
	}
}

// formatDueIn formats the time until a message is due, or a dash if due is zero. DeadCode is the code of the dead
// letter that the message will become, or empty.
func formatDueIn(deadCode string, due, now time.Time) string {
	switch {
	case deadCode != "":
		return "dead: " + deadCode
	case due.IsZero():
		return "-"
	case due.After(now):
		return text.Span(due.Sub(now))
	}
	return "now"
}

func formatRate(perSecond *float64) string {
	switch {
	case perSecond == nil || *perSecond == 0:
		return "-"
	case *perSecond < 10:
		return fmt.Sprintf("%.1f", *perSecond)
	}
	return fmt.Sprintf("%.0f", *perSecond)
}
