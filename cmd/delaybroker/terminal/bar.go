package terminal

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// barInterval is the minimum time between two draws of a bar.
const barInterval = 100 * time.Millisecond

// A Bar is a line on a terminal that shows the progress of a command: "68 of 120 dead letters". A nil Bar shows
// nothing.
type Bar struct {
	w     io.Writer
	noun  string
	total int

	mu       sync.Mutex // guards the fields below
	steps    int
	lastDraw time.Time
	ended    bool
}

// Bar returns a bar for total steps. It returns nil if total is below 2, if the output is JSON, or if Err is not a
// terminal.
func (p *Printer) Bar(noun string, total int) *Bar {
	if total < 2 || p.JSON || !IsTerminal(p.Err) {
		return nil
	}
	return &Bar{w: p.Err, noun: noun, total: total}
}

// Step counts one more finished step.
func (b *Bar) Step() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.steps++; b.ended || time.Since(b.lastDraw) < barInterval {
		return
	}
	b.lastDraw = time.Now()
	const width = 20
	fmt.Fprintf(b.w, "\r\x1b[K%s %d of %d %s", DrawPart(b.steps, b.total, width), b.steps, b.total, b.noun)
}

// DrawPart draws the finished part of a total, as a bar of width characters. The total must not be zero.
func DrawPart(steps, total, width int) string {
	filled := min(width, steps*width/total)
	return strings.Repeat("█", filled) + strings.Repeat("░", width-filled)
}

// Stop removes the bar from the terminal. It may be called more than once.
func (b *Bar) Stop() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.ended && !b.lastDraw.IsZero() {
		fmt.Fprint(b.w, "\r\x1b[K")
	}
	b.ended = true
}
