package demo

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/nats-io/nats.go"

	"delaybroker/broker/client"
	"delaybroker/broker/message"
	"delaybroker/cmd/delaybroker/terminal"
)

const (
	coreTargets   = "demo.core."   // prefix of the targets of a plain subscriber
	streamTargets = "demo.stream." // prefix of the targets of a stream

	// redrawInterval is the interval at which a terminal gets a new table, with the remaining time of each message.
	redrawInterval = 100 * time.Millisecond
)

const nextSteps = `
Next, in two terminals:
  delaybroker                                            # a broker, with a NATS server of its own
  delaybroker sub 'orders.>'
and in a third:
  delaybroker pub orders.expire '{"id":1}' --in 5s
`

// An example is a message that the demo publishes once and waits for.
type example struct {
	When    string   `json:"when"` // kind of delay, as text
	Subject string   `json:"subject"`
	Target  string   `json:"target"`
	To      string   `json:"to"`
	LateMS  *float64 `json:"late_ms"` // nil until it arrived

	wait     time.Duration // approximate time from the publish to the arrival
	lateness time.Duration
}

// examples returns messages for each kind of delay and each kind of target.
func examples(now time.Time) []example {
	names, err := message.NewNames(message.DefaultPrefix)
	if err != nil {
		panic("bug: default prefix: " + err.Error())
	}
	var messages []example
	add := func(when string, subject func(token, target string) string, token string, wait time.Duration) {
		m := example{When: when, Target: streamTargets + string(rune('a'+len(messages))), To: "stream", wait: wait}
		if len(messages)%2 == 1 {
			m.Target, m.To = coreTargets+string(rune('a'+len(messages))), "subscriber"
		}
		m.Subject = subject(token, m.Target)
		messages = append(messages, m)
	}
	add("a level", names.Level, "1s", time.Second)
	add("a level", names.Level, "2s", 2*time.Second)
	add("a duration", names.Level, "3s", 3*time.Second)
	add("a duration", names.In, "4s250ms", 4250*time.Millisecond)
	add("a time", names.At, message.TimeToken(now.Add(5*time.Second)), 5*time.Second)
	add("a time", names.At, message.TimeToken(now.Add(6*time.Second)), 6*time.Second)
	add("two levels", names.In, "8s500ms", 8500*time.Millisecond)
	return messages
}

// A board shows the arrived messages.
type board struct {
	printer  *terminal.Printer
	messages []example
	start    time.Time // when the messages were published
	arrived  int
	lines    int // number of lines on the terminal that the next drawing overwrites
}

// An arrival is a message at its target.
type arrival struct {
	subject  string
	lateness time.Duration
}

// newArrival returns an arrival at the current time.
func newArrival(subject string, header nats.Header) arrival {
	delay, _ := client.ParseArrival(&nats.Msg{Header: header})
	return arrival{subject, delay.Lateness()}
}

// watch shows the arrivals, and returns when all messages have arrived, or with the cause of ctx.
func (b *board) watch(ctx context.Context, arrivals <-chan arrival) error {
	live := terminal.IsTerminal(b.printer.Out) && !b.printer.JSON
	redraw := time.NewTicker(redrawInterval)
	defer redraw.Stop()
	for b.arrived < len(b.messages) {
		if live {
			b.draw()
		}
		select {
		case m := <-arrivals:
			b.record(m)
			if !live {
				fmt.Fprintf(b.printer.Err, "%d of %d arrived\n", b.arrived, len(b.messages))
			}
		case <-redraw.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	b.conclude()
	return nil
}

// record marks the message of an arrival as arrived. It ignores duplicates.
func (b *board) record(m arrival) {
	for i := range b.messages {
		if d := &b.messages[i]; d.Target == m.subject && d.LateMS == nil {
			ms := terminal.Milliseconds(m.lateness)
			d.lateness, d.LateMS = m.lateness, &ms
			b.arrived++
		}
	}
}

// draw draws the table of all messages over the previous drawing.
func (b *board) draw() {
	if b.lines > 0 {
		b.printer.Printf("\x1b[%dA\x1b[J", b.lines)
	}
	t := b.printer.Table()
	t.AppendHeader(terminal.Row("when", "published to", "for a", "late by"))
	t.SetColumnConfigs([]table.ColumnConfig{{Number: 4, WidthMin: 8, Align: text.AlignRight}})
	for _, m := range b.messages {
		lateness := terminal.Lateness(m.lateness)
		if m.LateMS == nil {
			lateness = fmt.Sprintf("in %.1f s", max(0, m.wait-time.Since(b.start)).Seconds())
		}
		t.AppendRow(terminal.Row(m.When, m.Subject, m.To, lateness))
	}
	rendered := t.Render()
	b.printer.Printf("%s\n", rendered)
	b.lines = strings.Count(rendered, "\n") + 1
}

// conclude draws the table for the last time, with a summary below.
func (b *board) conclude() {
	var early int
	var sum, maxLate time.Duration
	for _, m := range b.messages {
		if m.lateness < 0 {
			early++
		}
		sum += m.lateness
		maxLate = max(maxLate, m.lateness)
	}
	mean := sum / time.Duration(len(b.messages))
	if b.printer.AsJSON(map[string]any{
		"messages": b.messages, "early": early,
		"mean_late_ms": terminal.Milliseconds(mean), "max_late_ms": terminal.Milliseconds(maxLate),
	}) {
		return
	}
	b.draw()
	b.printer.Printf("\nall %d arrived, %d early; late by %s on average, %s at most\n%s",
		len(b.messages), early, terminal.Lateness(mean), terminal.Lateness(maxLate), nextSteps)
}
