package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// barFrequency is how often a bar is redrawn.
const barFrequency = 100 * time.Millisecond

// A bar is a line on a terminal that shows the progress of a verb: "68 of 120 dead letters". A nil bar shows nothing.
type bar struct {
	w     io.Writer
	what  string
	total int

	mu    sync.Mutex // guards what follows
	done  int
	drawn time.Time
	ended bool
}

// bar returns nil for a single step, and where stderr is no terminal.
func (a *app) bar(what string, total int) *bar {
	if total < 2 || a.json || !isTerminal(a.stderr) {
		return nil
	}
	return &bar{w: a.stderr, what: what, total: total}
}

func (b *bar) step() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.done++; b.ended || time.Since(b.drawn) < barFrequency {
		return
	}
	b.drawn = time.Now()
	const width = 20
	filled := min(width, b.done*width/b.total)
	drawing := strings.Repeat("█", filled) + strings.Repeat("░", width-filled)
	fmt.Fprintf(b.w, "\r\x1b[K%s %d of %d %s", drawing, b.done, b.total, b.what)
}

// stop removes the bar from the terminal. It may be called more than once.
func (b *bar) stop() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.ended && !b.drawn.IsZero() {
		fmt.Fprint(b.w, "\r\x1b[K")
	}
	b.ended = true
}
