package main

import (
	"fmt"
	"time"

	"delaybroker/broker/ratelog"
	"delaybroker/cmd/delaybroker/terminal"
)

// progressInterval is the time between two lines of progress.
const progressInterval = 2 * time.Second

// A progress shows the progress of a command on a terminal, with a bar, or with a line at each progressInterval.
type progress struct {
	app     *app
	noun    string
	rows    bool // the command prints rows, which a bar would overwrite
	bar     *terminal.Bar
	limiter ratelog.Limit
	started bool // update was called before
}

// update shows that the command has read one more message. Read is the number of messages read so far. Total is the
// approximate number of messages to read.
func (p *progress) update(read, total uint64) {
	if !p.started {
		p.started = true
		p.limiter.Allow(progressInterval) // the first line appears after one interval
		if !p.rows {
			p.bar = p.app.Bar(p.noun, int(total))
		}
	}
	p.bar.Step()
	if p.bar != nil {
		return
	}
	if _, ok := p.limiter.Allow(progressInterval); ok && terminal.IsTerminal(p.app.Err) {
		fmt.Fprintf(p.app.Err, "searched %d of about %d messages\n", read, total)
	}
}

// restart removes the bar. The next update draws another one.
func (p *progress) restart() {
	p.bar.Stop()
	p.bar, p.started = nil, false
}
