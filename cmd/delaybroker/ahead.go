package main

import (
	"fmt"
	"strings"
	"time"

	"delaybroker/broker/inspect"
	"delaybroker/broker/operation"
	"delaybroker/cmd/delaybroker/terminal"
)

// views are the views of operations whose row is more than a table can show.
var views = map[string]func(w *door, row any){"ahead": func(w *door, row any) { w.ahead(row.(inspect.Forecast)) }}

func unitName(step time.Duration) string {
	if step == time.Minute {
		return "minute"
	}
	return "hour"
}

// ahead shows a forecast, and how exact it is.
func (w *door) ahead(f inspect.Forecast) {
	target, step := "", time.Minute
	if p := w.use.Param("target"); p.Given() {
		target = " for " + p.String()
	}
	if len(f.Buckets) > 1 { // the first bucket begins now
		step = f.Buckets[1].To.Sub(f.Buckets[1].From)
	}
	if f.Pending == 0 {
		w.Printf("no message is pending%s\n", target)
	} else {
		w.showAhead(f, step)
	}
	w.printAccuracy(f, target)
}

func (a *app) showAhead(f inspect.Forecast, step time.Duration) {
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
		a.Printf("%s without a due message\n", terminal.Counted(empty, "more "+unitName(step)))
	}
}

func (a *app) chart(f inspect.Forecast) *terminal.Chart {
	numbers := []inspect.Amount{f.Overdue, f.Later, f.Unreadable}
	for _, b := range f.Buckets {
		numbers = append(numbers, b.Amount)
	}
	return a.Chart(numbers, f.Unplaced == 0)
}

func (a *app) printAccuracy(f inspect.Forecast, target string) {
	pending := fmt.Sprintf("%s pending%s", terminal.Counted(int(f.Pending), "message"), target)
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
	lines = append(lines, operation.Gaps(f.SilentStreams, f.HeaderTargets && target != "")...)
	if f.UnreadLanes > 0 {
		lines = append(lines, terminal.Counted(f.UnreadLanes, "lane")+" without a reader; their messages will be late")
	}
	lines = append(lines, "not included: messages published later, refusals, waits for a rate, expiries")
	fmt.Fprintln(a.Err, strings.Join(lines, "\n"))
}
