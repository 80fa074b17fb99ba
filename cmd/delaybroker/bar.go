package main

import (
	"time"

	"github.com/jedib0t/go-pretty/v6/progress"
)

// barFrequency is how often a bar is redrawn, and about how long a verb waits for its last state.
const barFrequency = 100 * time.Millisecond

// A bar shows on stderr how far a verb is. A nil bar shows nothing.
type bar struct {
	tracker *progress.Tracker
	done    chan struct{} // closed when nothing is drawn any more
}

// bar is nil for a single step, and where nobody would see it move.
func (a *app) bar(what string, total int) *bar {
	if total < 2 || a.json || !isTerminal(a.stderr) {
		return nil
	}
	w := progress.NewWriter()
	w.SetOutputWriter(a.stderr)
	w.SetStyle(progress.StyleBlocks)
	w.SetUpdateFrequency(barFrequency)
	w.SetAutoStop(true) // Stop would be lost on a Render that has not begun
	b := &bar{tracker: &progress.Tracker{Message: what, Total: int64(total)}, done: make(chan struct{})}
	w.AppendTracker(b.tracker)
	go func() {
		defer close(b.done)
		w.Render()
	}()
	return b
}

func (b *bar) step() {
	if b != nil {
		b.tracker.Increment(1)
	}
}

// stop returns when the terminal is free for others. It may be called again.
func (b *bar) stop() {
	if b == nil {
		return
	}
	if !b.tracker.IsDone() {
		b.tracker.MarkAsErrored()
	}
	<-b.done
}

// finish is stop for a verb that did all it had to, whatever it had counted on.
func (b *bar) finish() {
	if b != nil {
		b.tracker.MarkAsDone()
	}
	b.stop()
}
