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

// ahead shows a forecast, and how exact it is.
func (w *door) ahead(f inspect.Forecast) {
	target := ""
	if p := w.use.Param("target"); p.Given() {
		target = " for " + p.String()
	}
	if f.Pending == 0 {
		w.Printf("no message is pending%s\n", target)
	} else {
		w.showAhead(f)
	}
	w.printAccuracy(f, target)
}

func (a *app) showAhead(f inspect.Forecast) {
	numbers := []inspect.Amount{f.Overdue, f.Later, f.Unreadable}
	for _, b := range f.Buckets {
		numbers = append(numbers, b.Amount)
	}
	c := a.Chart(numbers, f.Unplaced == 0)
	c.AddRow("already due", f.Overdue)
	empty, unit := 0, "minute"
	if len(f.Buckets) > 1 && f.Buckets[1].To.Sub(f.Buckets[1].From) != time.Minute { // the first bucket begins now
		unit = "hour"
	}
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
		a.Printf("%s without a due message\n", terminal.Counted(empty, "more "+unit))
	}
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
