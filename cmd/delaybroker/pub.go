package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/cobra"

	"delaybroker/broker/message"
)

const (
	// ackTimeout is how long a publish may take. A refused one takes as long when the server's complaint gets lost.
	ackTimeout = 5 * time.Second

	// lookTimeout is how long a look at what was stored may take. It is only for what is printed.
	lookTimeout = time.Second

	maxCount = 1_000_000
)

// pubOptions are the flags of pub.
type pubOptions struct {
	when    when
	headers []string
	count   int
}

func (a *app) pubCommand() *cobra.Command {
	var o pubOptions
	c := &cobra.Command{
		Use:   "pub TARGET [BODY] (--in DURATION | --at TIME | --level LEVEL)",
		Short: "Publish a message that is delivered later",
		Long: `Publish a message that is delivered to TARGET later, and wait until it is stored. The body is read from stdin when it
is -, or left out while stdin is no terminal.`,
		Example: `  delaybroker pub orders.expire '{"id":1}' --in 15m
  delaybroker pub orders.expire '{"id":1}' --at 2026-12-24T18:00:00Z -H 'Delay-Expires: 10m'
  date | delaybroker pub clock.tick --level 5s --count 3`,
		Args: argumentsBetween(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error { return a.pub(cmd, args, o) },
	}
	f := c.Flags()
	f.StringVar(&o.when.in, "in", "", "deliver after a duration: 15m, 1h30m, 1500ms")
	f.StringVar(&o.when.at, "at", "", "deliver at a time: RFC 3339 with a zone; rounded up to a millisecond")
	f.StringVar(&o.when.level, "level", "", "publish to a level: 30m")
	f.StringArrayVarP(&o.headers, "header", "H", nil, "header, as in 'Key: value'; may be repeated")
	f.IntVar(&o.count, "count", 1, "how many times to publish it")
	return c
}

// check is what cobra has no words for.
func (o pubOptions) check() error {
	given := 0
	for _, text := range []string{o.when.in, o.when.at, o.when.level} {
		if text != "" {
			given++
		}
	}
	switch {
	case given != 1:
		return fmt.Errorf("%w: want one of --in, --at and --level, got %d", errUsage, given)
	case o.count < 1 || o.count > maxCount:
		return fmt.Errorf("%w: --count %d: want 1 to %d", errUsage, o.count, maxCount)
	}
	return nil
}

func (a *app) pub(cmd *cobra.Command, args []string, o pubOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	header, err := parseHeaders(o.headers)
	if err != nil {
		return err
	}
	body, err := readBody(cmd.InOrStdin(), args[1:])
	if err != nil {
		return err
	}
	ctx, stop := interruptible(cmd.Context())
	defer stop()
	s, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer s.close()

	subject, err := o.when.subject(s.names, args[0], time.Now())
	if err != nil {
		return err
	}
	p := publisher{session: s, msg: &nats.Msg{Subject: subject, Header: header, Data: body}, looks: true}
	if _, problem := p.parse("", 0, time.Now()); problem != nil {
		// The broker would say the same, on the dead letter.
		return fmt.Errorf("%w: %s", errUsage, problem.Sentence)
	}
	return a.pubAll(ctx, &p, o.count)
}

// pubAll shows what was stored even when not everything was.
func (a *app) pubAll(ctx context.Context, p *publisher, count int) error {
	bar := a.bar("publishing", count)
	defer bar.stop()
	t := a.table()
	t.AppendHeader(row("id", "stream", "due"))
	var err error
	for n := 0; n < count && err == nil; n++ {
		var m published
		if m, err = p.publish(ctx); err != nil {
			break
		}
		bar.step()
		if a.json {
			err = a.printJSON(m)
			continue
		}
		t.AppendRow(m.row())
	}
	bar.stop()
	if t.Length() > 0 {
		t.Render()
	}
	return err
}

// parseHeaders reads "Key: value".
func parseHeaders(lines []string) (nats.Header, error) {
	h := nats.Header{}
	for _, line := range lines {
		key, value, ok := strings.Cut(line, ":")
		if key = strings.TrimSpace(key); !ok || key == "" {
			return nil, fmt.Errorf("%w: -H %q: want 'Key: value'", errUsage, line)
		}
		h.Add(key, strings.TrimSpace(value))
	}
	return h, nil
}

func readBody(stdin io.Reader, args []string) ([]byte, error) {
	if len(args) > 0 && args[0] != "-" {
		return []byte(args[0]), nil
	}
	if f, ok := stdin.(*os.File); ok && len(args) == 0 && isTerminal(f) {
		return nil, nil
	}
	body, err := io.ReadAll(stdin)
	if err != nil {
		return nil, fmt.Errorf("read the body from stdin: %w", err)
	}
	return body, nil
}

// A publisher publishes one message, again and again.
type publisher struct {
	session *session
	msg     *nats.Msg
	looks   bool // it asks when a message was stored; false once that was refused, which the server logs
}

// published is what is known of a message that was accepted.
type published struct {
	ID        string    `json:"id,omitempty"` // empty when unknown: see look
	Stream    string    `json:"stream"`
	Sequence  uint64    `json:"sequence"`
	Subject   string    `json:"subject"`
	Due       time.Time `json:"due"`
	Estimated bool      `json:"estimated,omitempty"` // due is by our own clock
	Duplicate bool      `json:"duplicate,omitempty"` // it was stored before, under its Nats-Msg-Id
}

func (m published) row() table.Row {
	id, due := m.ID, m.Due.UTC().Format(time.RFC3339Nano)
	if id == "" {
		id = fmt.Sprintf("%s-%d", m.Stream, m.Sequence)
	}
	if m.Estimated {
		due = "about " + m.Due.UTC().Format(time.RFC3339)
	}
	if m.Duplicate {
		id += " (stored before)"
	}
	return row(id, m.Stream, due)
}

func (p *publisher) publish(ctx context.Context) (published, error) {
	now := time.Now()
	ack, err := p.send(ctx)
	if err != nil {
		return published{}, err
	}
	if !strings.HasPrefix(ack.Stream, p.session.names.LevelStream("")) {
		return published{}, fmt.Errorf("the stream %s took %s, and it is none of the broker's", ack.Stream, p.msg.Subject)
	}
	m := published{Stream: ack.Stream, Sequence: ack.Sequence, Subject: p.msg.Subject, Duplicate: ack.Duplicate, Estimated: true}
	if at, ok := p.look(ctx, ack); ok {
		now, m.Estimated = at, false
	}
	request, _ := p.parse(m.Stream, m.Sequence, now) // pub has looked at the problem
	m.Due = request.Due
	if !m.Estimated {
		m.ID = request.ID
	}
	return m, nil
}

// parse is what the broker will read in the message.
func (p *publisher) parse(stream string, sequence uint64, at time.Time) (message.Request, *message.Problem) {
	policy := message.Policy{Names: p.session.names}
	return policy.Parse(message.Incoming{Stream: stream, Sequence: sequence, At: at, Subject: p.msg.Subject, Header: p.msg.Header})
}

// send publishes and says of a failure what it means.
func (p *publisher) send(ctx context.Context) (*jetstream.PubAck, error) {
	ctx, cancel := p.session.allowed(ctx)
	defer cancel()
	ctx, cancelTimeout := context.WithTimeout(ctx, ackTimeout)
	defer cancelTimeout()
	subject := p.msg.Subject
	ack, err := p.session.js.PublishMsg(ctx, p.msg)
	refusal := context.Cause(ctx)
	switch {
	case err == nil:
		return ack, nil
	case errors.Is(err, jetstream.ErrNoStreamResponse):
		return nil, fmt.Errorf("no stream takes %s: there is no such level or duration, or no broker with the prefix %q has made its streams here",
			subject, p.session.names.Prefix())
	case errors.Is(refusal, nats.ErrPermissionViolation):
		return nil, fmt.Errorf("publish to %s: %w", subject, refusal)
	case errors.Is(refusal, context.DeadlineExceeded):
		return nil, fmt.Errorf("publish to %s: no answer for %s; a server that refuses a publish does not answer it", subject, ackTimeout)
	}
	return nil, fmt.Errorf("publish to %s: %w", subject, err)
}

// look asks when a message was stored, on which its due and its id rest. It fails when we may not ask, and when the
// message has moved on already, as one in the intake may have.
func (p *publisher) look(ctx context.Context, ack *jetstream.PubAck) (time.Time, bool) {
	if !p.looks {
		return time.Time{}, false
	}
	ctx, cancel := p.session.allowed(ctx)
	defer cancel()
	ctx, cancelTimeout := context.WithTimeout(ctx, lookTimeout)
	defer cancelTimeout()
	stored, err := p.session.stored(ctx, ack.Stream, ack.Sequence)
	p.looks = err == nil || errors.Is(err, jetstream.ErrMsgNotFound)
	return stored.At, err == nil
}
