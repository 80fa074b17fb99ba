package main

import (
	"fmt"
	"strings"

	"delaybroker/broker/inspect"
)

const (
	widestChart  = 60
	elsewhere    = 40 // where stdout is no terminal
	narrowChart  = 4  // a chart that is narrower shows nothing
	chartColumns = 4
)

// A chart is a table of numbers with a bar for each.
type chart struct {
	*sheet
	largest uint64
	width   int // of the longest bar
}

// newChart makes room for the numbers of a forecast.
func newChart(a *app, f inspect.Forecast) *chart {
	c := &chart{width: elsewhere, largest: 1, sheet: a.sheet(
		column{name: "due from"}, column{name: "messages"}, column{name: "±", drop: 2}, column{name: "chart", drop: 1})}
	exact := true
	longest := len("messages")
	for _, b := range append(f.Buckets, inspect.Bucket{Amount: f.Overdue}, inspect.Bucket{Amount: f.Later},
		inspect.Bucket{Amount: f.Unreadable}) {
		c.largest = max(c.largest, b.Messages)
		longest = max(longest, len(fmt.Sprint(b.Messages)))
		exact = exact && b.Within == 0
	}
	if exact && f.Unplaced == 0 {
		c.leaveOut("±")
	}
	if width, _, ok := a.screen(); ok {
		const border, gap = 1, 3
		others := len("11-22 10:00Z") + 2*longest + border + gap*chartColumns
		c.width = min(widestChart, width-others)
	}
	if c.width < narrowChart {
		c.leaveOut("chart")
	}
	return c
}

// row adds a line if it is shown.
func (c *chart) row(name string, n inspect.Amount, show bool) {
	if !show {
		return
	}
	within := "-"
	if n.Within > 0 {
		within = fmt.Sprint(n.Within)
	}
	c.add(name, n.Messages, within, c.bar(n.Messages))
}

// bar is as long as the number is large. Eighths of a character are drawn too, so that no number above zero has none.
func (c *chart) bar(n uint64) string {
	if c.width < narrowChart {
		return ""
	}
	const parts = 8
	eighths := int(float64(n) / float64(c.largest) * float64(c.width*parts))
	if n > 0 {
		eighths = max(eighths, 1)
	}
	drawn := strings.Repeat("█", eighths/parts)
	if rest := eighths % parts; rest > 0 {
		drawn += string([]rune("▏▎▍▌▋▊▉")[rest-1])
	}
	return drawn
}
