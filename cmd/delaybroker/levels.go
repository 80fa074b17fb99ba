package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	pretty "github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"delaybroker/broker/inspect"
	"delaybroker/broker/operation"
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
	w := a.doorOf("levels")
	w.view = func(_ *door, row any) { a.showLevels(row.(inspect.Lanes), o) }
	c := w.command()
	once := c.RunE
	c.Args = func(cmd *cobra.Command, args []string) error { return o.parseWatch(cmd, args) }
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		if o.every == 0 {
			return once(cmd, nil)
		}
		return a.withInspector(cmd, func(ctx context.Context, i *inspect.Inspector) error {
			return a.watchLevels(ctx, i, o)
		})
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
		const otherLines = 9 // lines for borders, the header, the text below them, and the cursor
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
	s.Print()
	total := fmt.Sprintf("total: %s pending, overdue: %s, %s unread, %s",
		terminal.Counted(int(v.Totals.Pending), "message"), text.Seconds(v.Totals.Overdue),
		terminal.Counted(v.Totals.UnreadLanes, "lane"), terminal.Counted(int(v.Totals.Dead), "dead letter"))
	if width, _, ok := terminal.Size(a.Out); ok {
		total = pretty.WrapSoft(total, width)
	}
	a.Printf("%s\n", total)
	for _, line := range operation.PauseLines(v.Paused) {
		a.Printf("%s\n", line)
	}
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
