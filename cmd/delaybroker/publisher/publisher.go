package publisher

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/inspect"
	"delaybroker/broker/message"
	"delaybroker/broker/text"
)

const (
	// ackTimeout is how long a publish may take. A refused one takes as long if the server's error gets lost.
	ackTimeout = 5 * time.Second

	// lookTimeout is how long the question when a message was stored may take. The answer is only printed.
	lookTimeout = time.Second

	// inFlight is how many publishes are under way at a time. One after the other, each would cost two round trips.
	inFlight = 64
)

// A Publisher publishes one message, once or more often.
type Publisher struct {
	Session *inspect.Session
	Policy  message.Policy
	Message *nats.Msg

	blind atomic.Bool // do not ask when a message was stored: the server refused that, and logs each refusal
}

// Published describes a message that was accepted.
type Published struct {
	ID        string    `json:"id,omitempty"` // empty when unknown: see look
	Stream    string    `json:"stream"`
	Sequence  uint64    `json:"sequence"`
	Subject   string    `json:"subject"`
	Due       time.Time `json:"due"`
	Estimated bool      `json:"estimated,omitempty"` // due is by our own clock
	Duplicate bool      `json:"duplicate,omitempty"` // it was stored before, under its Nats-Msg-Id
}

// Many publishes the message count times, and calls stored for each message that was stored. Several calls may run at
// the same time. Many ends at the first failure, after the publishes in flight have ended. The first message is
// published alone: it shows whether publishing works, and whether we may ask when a message was stored.
func (p *Publisher) Many(ctx context.Context, count int, stored func(Published) error) error {
	if err := p.one(ctx, stored); err != nil || count == 1 {
		return err
	}
	return p.others(ctx, count-1, stored)
}

func (p *Publisher) one(ctx context.Context, stored func(Published) error) error {
	sending, cancel := p.Session.Allowed(ctx)
	defer cancel()
	m, err := p.publish(sending)
	if err != nil {
		return err
	}
	return stored(m)
}

func (p *Publisher) others(ctx context.Context, count int, stored func(Published) error) error {
	ctx, cancel := p.Session.Allowed(ctx)
	defer cancel()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	turns := make(chan struct{})
	var publishing sync.WaitGroup
	for range min(inFlight, count) {
		publishing.Go(func() {
			for range turns {
				m, err := p.publish(context.WithoutCancel(ctx))
				if err == nil {
					err = stored(m)
				}
				if err != nil {
					fail(err)
				}
			}
		})
	}
	for range count {
		select {
		case turns <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
	}
	close(turns)
	publishing.Wait()
	return context.Cause(ctx)
}

func (p *Publisher) publish(ctx context.Context) (Published, error) {
	now := time.Now()
	ack, err := p.send(ctx)
	if err != nil {
		return Published{}, err
	}
	if !strings.HasPrefix(ack.Stream, p.Policy.Names.LevelStream("")) {
		return Published{}, fmt.Errorf("the stream %s took %s, and it is none of the broker's",
			ack.Stream, p.Message.Subject)
	}
	m := Published{
		Stream: ack.Stream, Sequence: ack.Sequence, Subject: p.Message.Subject, Duplicate: ack.Duplicate, Estimated: true,
	}
	if at, ok := p.look(ctx, ack); ok {
		now, m.Estimated = at, false
	}
	request, _ := p.Parse(m.Stream, m.Sequence, now) // pub has reported the problem
	m.Due = request.Due
	if !m.Estimated {
		m.ID = request.ID
	}
	return m, nil
}

// Parse reads the message as the broker will.
func (p *Publisher) Parse(stream string, sequence uint64, at time.Time) (message.Request, *message.Problem) {
	return p.Policy.Parse(message.Incoming{
		Stream: stream, Sequence: sequence, At: at, Subject: p.Message.Subject, Header: message.Header(p.Message.Header),
	})
}

// send publishes, and explains a failure. The context is one of Session.Allowed.
func (p *Publisher) send(allowed context.Context) (*jetstream.PubAck, error) {
	ctx, cancel := context.WithTimeout(allowed, ackTimeout)
	defer cancel()
	m := *p.Message // the client library may add to it
	ack, err := p.Session.JetStream.PublishMsg(ctx, &m)
	refusal, subject := context.Cause(ctx), p.Message.Subject
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

// untaken explains why no stream takes the message, as far as our rights let us ask.
func (p *Publisher) untaken(ctx context.Context) error {
	if err := p.Session.HasJetStream(ctx); err != nil {
		return fmt.Errorf("publish to %s: %w", p.Message.Subject, err)
	}
	err := fmt.Errorf("no stream takes %s: there is no such level or duration,"+
		" or no broker with the prefix %q has made its streams here",
		p.Message.Subject, p.Policy.Names.Prefix())
	if others := p.Session.Prefixes(ctx); len(others) > 0 && !slices.Contains(others, p.Policy.Names.Prefix()) {
		err = fmt.Errorf("%w; there are streams of the prefix %s: set DELAY_PREFIX", err,
			text.Printable(strings.Join(others, ", "), 200))
	}
	return err
}

// look asks when a message was stored: its due time and its id follow from that. It returns false when we may not ask,
// and when the message has moved on already, as one in the intake may have.
func (p *Publisher) look(ctx context.Context, ack *jetstream.PubAck) (time.Time, bool) {
	if p.blind.Load() {
		return time.Time{}, false
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	stored, err := p.Session.Stored(ctx, ack.Stream, ack.Sequence)
	p.blind.Store(err != nil && !errors.Is(err, jetstream.ErrMsgNotFound))
	return stored.At, err == nil
}
