package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/inspect"
	"delaybroker/broker/message"
)

// A publisher publishes one message, once or more often.
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

// parse reads the message as the broker will.
func (p *publisher) parse(stream string, sequence uint64, at time.Time) (message.Request, *message.Problem) {
	return p.policy.Parse(message.Incoming{
		Stream: stream, Sequence: sequence, At: at, Subject: p.msg.Subject, Header: message.Header(p.msg.Header),
	})
}

// send publishes, and explains a failure. The context is one of Session.Allowed.
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

// untaken explains why no stream takes the message, as far as we may ask.
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

// look asks when a message was stored: its due time and its id follow from that. It returns false when we may not ask,
// and when the message has moved on already, as one in the intake may have.
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
