package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/cobra"

	"delaybroker/broker/inspect"
	"delaybroker/broker/message"
	"delaybroker/levels"
)

const (
	// ackTimeout is how long a publish may take. A refused one takes as long when the
	// server's refusal gets lost.
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
	completes(c, "level", strings.Fields(levels.Default().String())...)
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
	c, err := readClientConfig()
	if err != nil {
		return err
	}
	now := time.Now()
	subject, err := o.when.subject(c.names, args[0], now)
	if err != nil {
		return err
	}
	p := publisher{names: c.names, policy: c.policy, msg: &nats.Msg{Subject: subject, Header: header}}
	p.looks.Store(true)
	request, problem := p.parse("", 0, now)
	if problem != nil {
		// The broker would say the same, on the dead letter.
		return fmt.Errorf("%w: %s", errUsage, problem.Sentence)
	}
	if p.msg.Data, err = readBody(cmd.InOrStdin(), args[1:]); err != nil {
		return err
	}
	ctx, stop := interruptible(cmd.Context())
	defer stop()
	a.warnOfNames()
	if p.session, err = a.connectClient(ctx, c); err != nil {
		return err
	}
	defer p.session.Close()
	if ago, past := o.when.past(now); past {
		fmt.Fprintf(a.stderr, "--at %s is %s ago: it is delivered at once\n", o.when.at, inspect.Span(ago))
	} else if asked := header.Get(message.HeaderUntil); asked != "" && request.Due.Before(now) {
		fmt.Fprintf(a.stderr, "%s %s is past: it is delivered at once\n", message.HeaderUntil,
			inspect.Printable(asked, 100))
	}
	return a.pubAll(ctx, &p, o.count)
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
	session *inspect.Session
	names   message.Names
	policy  message.Policy
	msg     *nats.Msg
	looks   atomic.Bool // it asks when a message was stored; false once that was refused, which the server logs
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

func (m published) cells() []any {
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
	return []any{id, m.Stream, due}
}

func (p *publisher) publish(ctx context.Context) (published, error) {
	now := time.Now()
	ack, err := p.send(ctx)
	if err != nil {
		return published{}, err
	}
	if !strings.HasPrefix(ack.Stream, p.names.LevelStream("")) {
		return published{}, fmt.Errorf("the stream %s took %s, and it is none of the broker's",
			ack.Stream, p.msg.Subject)
	}
	m := published{
		Stream: ack.Stream, Sequence: ack.Sequence, Subject: p.msg.Subject, Duplicate: ack.Duplicate, Estimated: true,
	}
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
	return p.policy.Parse(message.Incoming{
		Stream: stream, Sequence: sequence, At: at, Subject: p.msg.Subject, Header: message.Header(p.msg.Header),
	})
}

// send publishes and says of a failure what it means. The context is one of Session.Allowed.
func (p *publisher) send(allowed context.Context) (*jetstream.PubAck, error) {
	ctx, cancel := context.WithTimeout(allowed, ackTimeout)
	defer cancel()
	m := *p.msg // the client library may add to it
	ack, err := p.session.JetStream.PublishMsg(ctx, &m)
	refusal, subject := context.Cause(ctx), p.msg.Subject
	switch {
	case err == nil:
		return ack, nil
	case errors.Is(err, jetstream.ErrNoStreamResponse):
		return nil, p.untaken(allowed)
	case errors.Is(refusal, nats.ErrPermissionViolation):
		return nil, fmt.Errorf("publish to %s: %w", subject, refusal)
	case errors.Is(refusal, context.DeadlineExceeded):
		return nil, fmt.Errorf("publish to %s: no answer for %s; a server that refuses a publish does not answer it",
			subject, ackTimeout)
	}
	return nil, fmt.Errorf("publish to %s: %w", subject, err)
}

// untaken says why no stream takes the message, as far as we may ask.
func (p *publisher) untaken(ctx context.Context) error {
	if err := p.session.HasJetStream(ctx); err != nil {
		return fmt.Errorf("publish to %s: %w", p.msg.Subject, err)
	}
	err := fmt.Errorf("no stream takes %s: there is no such level or duration,"+
		" or no broker with the prefix %q has made its streams here",
		p.msg.Subject, p.names.Prefix())
	if others := p.session.Prefixes(ctx); len(others) > 0 && !slices.Contains(others, p.names.Prefix()) {
		err = fmt.Errorf("%w; there are streams of the prefix %s: set DELAY_PREFIX", err,
			inspect.Printable(strings.Join(others, ", "), 200))
	}
	return err
}

// look asks when a message was stored, on which its due and its id rest. It fails when we may not ask, and when the
// message has moved on already, as one in the intake may have.
func (p *publisher) look(ctx context.Context, ack *jetstream.PubAck) (time.Time, bool) {
	if !p.looks.Load() {
		return time.Time{}, false
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	stored, err := p.session.Stored(ctx, ack.Stream, ack.Sequence)
	p.looks.Store(err == nil || errors.Is(err, jetstream.ErrMsgNotFound))
	return stored.At, err == nil
}
