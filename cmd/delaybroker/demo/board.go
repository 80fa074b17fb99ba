package demo

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/client"
	"delaybroker/broker/message"
	"delaybroker/cmd/delaybroker/terminal"
)

const (
	coreTargets   = "demo.core."   // prefix of the targets of a plain subscriber
	streamTargets = "demo.stream." // prefix of the targets of a stream
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

	lateness time.Duration
}

// examples returns messages for each kind of delay and each kind of target.
func examples(now time.Time) []example {
	names, _ := message.NewNames(message.DefaultPrefix) // cannot fail
	var messages []example
	add := func(when string, subject func(token, target string) string, token string) {
		m := example{When: when, Target: streamTargets + string(rune('a'+len(messages))), To: "stream"}
		if len(messages)%2 == 1 {
			m.Target, m.To = coreTargets+string(rune('a'+len(messages))), "subscriber"
		}
		m.Subject = subject(token, m.Target)
		messages = append(messages, m)
	}
	add("a level", names.Level, "1s")
	add("a level", names.Level, "2s")
	add("a duration", names.Level, "3s")
	add("a duration", names.In, "4s250ms")
	add("a time", names.At, message.TimeToken(now.Add(5*time.Second)))
	add("a time", names.At, message.TimeToken(now.Add(6*time.Second)))
	add("two levels", names.In, "8s500ms")
	return messages
}

// A board shows the messages as they arrive.
type board struct {
	printer  *terminal.Printer
	messages []example
	arrived  int
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

// rowFormat has the columns of a message: when, published to, for a, late by.
const rowFormat = "%-10s  %-35s  %-10s  %8s\n"

// watch shows the arrivals, and returns when all messages have arrived, or with the cause of ctx.
func (b *board) watch(ctx context.Context, arrivals <-chan arrival) error {
	b.printRow("WHEN", "PUBLISHED TO", "FOR A", "LATE BY")
	for b.arrived < len(b.messages) {
		select {
		case m := <-arrivals:
			b.record(m)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	b.conclude()
	return nil
}

// record marks the message of an arrival as arrived, and shows it. It ignores duplicates.
func (b *board) record(m arrival) {
	for i := range b.messages {
		if d := &b.messages[i]; d.Target == m.subject && d.LateMS == nil {
			ms := terminal.Milliseconds(m.lateness)
			d.lateness, d.LateMS = m.lateness, &ms
			b.arrived++
			b.printRow(d.When, d.Subject, d.To, terminal.Lateness(d.lateness))
		}
	}
}

func (b *board) printRow(cells ...any) {
	if !b.printer.JSON {
		b.printer.Printf(rowFormat, cells...)
	}
}

// conclude prints the summary.
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
	b.printer.Printf("\nall %d arrived, %d early; late by %s on average, %s at most\n%s",
		len(b.messages), early, terminal.Lateness(mean), terminal.Lateness(maxLate), nextSteps)
}
