package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"delaybroker/broker/inspect"
	"delaybroker/cmd/delaybroker/terminal"
	"delaybroker/levels"
)

const defaultAheadRead = 50_000

type aheadOptions struct {
	length  string
	unit    string
	target  string
	maxRead uint64
}

func (a *app) aheadCommand() *cobra.Command {
	var o aheadOptions
	c := &cobra.Command{
		Use:   "ahead",
		Short: "Forecast the number of messages due in each minute or hour",
		Long: `Forecast the number of pending messages that are due in each minute or hour, by the server's clock, in UTC.

±  the maximum error of the number, in 95 of 100 cases; a number without it is exact

The command reads the smallest lanes completely, up to --most headers in all, so their numbers are exact. In a larger
level, messages of clients leave in the order in which they were stored, so the server counts them, in at most 300
requests. The command estimates all other messages from a sample of up to 2000 messages of each large lane.

The forecast does not include messages that are published later, refusals, waits for a rate, or Delay-Expires. A message
that moves to another lane during the forecast may be counted twice, or not at all. The counts of a level are exact only
if the clocks of the servers that led its stream agreed.

exit codes: 0 shown, 1 failed, 2 bad arguments or settings`,
		Example: `  delaybroker ahead
  delaybroker ahead --for 30m --target 'orders.>'
  delaybroker ahead --for 7d --by hour --most 1000000 --json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			query, err := o.query()
			if err != nil {
				return err
			}
			return a.withInspector(cmd, func(ctx context.Context, i *inspect.Inspector) error { return a.ahead(ctx, i, query) })
		},
	}
	c.Flags().StringVar(&o.length, "for", levels.FormatDuration(inspect.DefaultForecastLength), "length of the forecast")
	c.Flags().StringVar(&o.unit, "by", "", "minute or hour (default: minute if --for is at most 2h, otherwise hour)")
	addPatternFlag(c.Flags(), &o.target)
	c.Flags().Uint64Var(&o.maxRead, "most", defaultAheadRead,
		"maximum number of headers to read, without the samples; 0 estimates all lanes")
	addCompletion(c, "by", "minute", "hour")
	return c
}

func (o aheadOptions) query() (inspect.ForecastQuery, error) {
	query, err := inspect.ParseForecastQuery(o.length, o.unit)
	if err != nil {
		return query, fmt.Errorf("%w: --%w", errUsage, err)
	}
	query.Target, query.MaxRead = o.target, o.maxRead
	return query, nil
}

func unitName(step time.Duration) string {
	if step == time.Minute {
		return "minute"
	}
	return "hour"
}

func (a *app) ahead(ctx context.Context, i *inspect.Inspector, query inspect.ForecastQuery) error {
	f, err := i.Forecast(ctx, query)
	if err != nil {
		return err
	}
	if a.AsJSON(f) {
		return nil
	}
	if f.Pending == 0 {
		a.Printf("no message is pending%s\n", targetSuffix(query.Target))
	} else {
		a.showAhead(f, query)
	}
	a.printAccuracy(f, query)
	return nil
}

func (a *app) showAhead(f inspect.Forecast, query inspect.ForecastQuery) {
	c := a.chart(f)
	c.AddRow("already due", f.Overdue)
	empty := 0
	for _, b := range f.Buckets {
		if b.Messages == 0 {
			empty++
		}
		c.AddRow(b.From.Format("01-02 15:04Z"), b.Amount)
	}
	c.AddRow("later", f.Later)
	c.AddRow("unreadable", f.Unreadable)
	c.AddRow("unknown", inspect.Amount{Messages: f.Unplaced, MaxError: f.Unplaced})
	c.Print()
	if empty > 0 {
		a.Printf("%s without a due message\n", terminal.Counted(empty, "more "+unitName(query.Step)))
	}
}

func (a *app) chart(f inspect.Forecast) *terminal.Chart {
	numbers := []inspect.Amount{f.Overdue, f.Later, f.Unreadable}
	for _, b := range f.Buckets {
		numbers = append(numbers, b.Amount)
	}
	return a.Chart(numbers, f.Unplaced == 0)
}

func targetSuffix(target string) string {
	if target == "" {
		return ""
	}
	return " for " + target
}

func (a *app) printAccuracy(f inspect.Forecast, query inspect.ForecastQuery) {
	pending := fmt.Sprintf("%s pending%s", terminal.Counted(int(f.Pending), "message"), targetSuffix(query.Target))
	var lines []string
	if f.Exact {
		lines = append(lines, pending+", exactly")
	} else {
		const format = "%s: %d read, %d counted by the order of their level; a sample of %d represents %d"
		lines = append(lines, fmt.Sprintf(format, pending, f.Read, f.Ordered, f.Sampled, f.Represented))
	}
	if f.Unplaced > 0 {
		lines = append(lines, fmt.Sprintf("unknown: %d messages that no sample contained; raise --most to read more",
			f.Unplaced))
	}
	lines = append(lines, gapLines(f.SilentStreams, f.HeaderTargets && query.Target != "")...)
	if f.UnreadLanes > 0 {
		lines = append(lines, terminal.Counted(f.UnreadLanes, "lane")+" without a reader; their messages will be late")
	}
	lines = append(lines, "not included: messages published later, refusals, waits for a rate, expiries")
	fmt.Fprintln(a.Err, strings.Join(lines, "\n"))
}
