package terminal

import (
	"fmt"
	"strings"

	"delaybroker/broker/inspect"
)

const (
	maxChartWidth     = 60
	defaultChartWidth = 40 // characters, if Out is not a terminal
	minChartWidth     = 4  // minimum width of the bars, in characters
	chartColumns      = 4
)

// A Chart is a table of numbers of messages, with a bar for each number.
type Chart struct {
	*Sheet
	largest uint64
	width   int // width of the longest bar
}

// Chart returns an empty chart, scaled to these numbers of messages. If exact is set and every MaxError is zero, the
// chart has no column ±.
func (p *Printer) Chart(numbers []inspect.Amount, exact bool) *Chart {
	c := &Chart{width: defaultChartWidth, largest: 1, Sheet: p.Sheet([]Column{
		{Name: "due from"}, {Name: "messages"}, {Name: "±", Drop: 2}, {Name: "chart", Drop: 1}})}
	longest := len("messages")
	for _, n := range numbers {
		c.largest = max(c.largest, n.Messages)
		longest = max(longest, len(fmt.Sprint(n.Messages)))
		exact = exact && n.MaxError == 0
	}
	if exact {
		c.Hide("±")
	}
	if width, _, ok := Size(p.Out); ok {
		const border, gap = 1, 3
		otherColumns := len("11-22 10:00Z") + 2*longest + border + gap*chartColumns
		c.width = min(maxChartWidth, width-otherColumns)
	}
	if c.width < minChartWidth {
		c.Hide("chart")
	}
	return c
}

// AddRow adds a row, unless the number is zero.
func (c *Chart) AddRow(name string, n inspect.Amount) {
	if n.Messages == 0 {
		return
	}
	maxError := "-"
	if n.MaxError > 0 {
		maxError = fmt.Sprint(n.MaxError)
	}
	c.Add(name, n.Messages, maxError, c.bar(n.Messages))
}

// bar returns a bar with a length proportional to the number, in eighths of a character. A number above zero has at
// least one eighth. Without room for bars, the bar is empty.
func (c *Chart) bar(n uint64) string {
	if c.width < minChartWidth {
		return ""
	}
	const parts = 8
	eighths := int(float64(n) / float64(c.largest) * float64(c.width*parts))
	if n > 0 {
		eighths = max(eighths, 1)
	}
	bar := strings.Repeat("█", eighths/parts)
	if remainder := eighths % parts; remainder > 0 {
		bar += string([]rune("▏▎▍▌▋▊▉")[remainder-1])
	}
	return bar
}
