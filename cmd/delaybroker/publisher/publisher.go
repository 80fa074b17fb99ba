package publisher

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"delaybroker/broker/inspect"
	"delaybroker/broker/message"
	"delaybroker/broker/text"
)

const (
	// ackTimeout is the timeout of a publish.
	ackTimeout = 5 * time.Second

	// storedTimeout is the timeout of the request for the time at which a message was stored. Only the output needs the
	// answer, so a user waits at most this long.
	storedTimeout = time.Second

	// maxInFlight is the maximum number of concurrent publishes.
	maxInFlight = 64
)

// A Publisher publishes one message, once or more often.
type Publisher struct {
	Session *inspect.Session
	Policy  message.Policy
	Message *nats.Msg

	// timeForbidden is true if the most recent request of storedTime failed: further requests would fill the server's
	// log. A missing message is no failure.
	timeForbidden atomic.Bool
}

// Published describes a message that was accepted.
type Published struct {
	ID        string    `json:"id,omitempty"` // empty if unknown: see storedTime
	Stream    string    `json:"stream"`
	Sequence  uint64    `json:"sequence"`
	Subject   string    `json:"subject"`
	Due       time.Time `json:"due"`
	Estimated bool      `json:"estimated,omitempty"` // the local clock determined Due
	Duplicate bool      `json:"duplicate,omitempty"` // it was already stored, under its Nats-Msg-Id
}

// Publish publishes count copies of the message, and calls stored for each stored message, possibly concurrently.
// Publish ends at the first failure, after the publishes in flight have ended. It publishes the first message alone,
// to find out whether the server allows the publish and the request of storedTime.
func (p *Publisher) Publish(ctx context.Context, count int, stored func(Published) error) error {
	if err := p.publishFirst(ctx, stored); err != nil || count == 1 {
		return err
	}
	return p.publishRest(ctx, count-1, stored)
}

// publishFirst publishes the message once. It has its own context from [inspect.Session.WithRefusal]: a refused request
// of storedTime ends this context, and must not end publishRest.
func (p *Publisher) publishFirst(ctx context.Context, stored func(Published) error) error {
	refusalCtx, cancel := p.Session.WithRefusal(ctx)
	defer cancel()
	m, err := p.publishOnce(refusalCtx)
	if err != nil {
		return err
	}
	return stored(m)
}

// publishRest publishes count copies of the message, concurrently.
func (p *Publisher) publishRest(ctx context.Context, count int, stored func(Published) error) error {
	refusalCtx, cancel := p.Session.WithRefusal(ctx)
	defer cancel()
	group, groupCtx := errgroup.WithContext(refusalCtx)
	group.SetLimit(maxInFlight)
	for n := 0; n < count && groupCtx.Err() == nil; n++ {
		group.Go(func() error {
			m, err := p.publishOnce(context.WithoutCancel(groupCtx)) // a failure does not end the publishes in flight
			if err != nil {
				return err
			}
			return stored(m)
		})
	}
	err := group.Wait()
	return cmp.Or(context.Cause(refusalCtx), err)
}

// publishOnce publishes the message, and returns its due time and, if known, its id.
func (p *Publisher) publishOnce(ctx context.Context) (Published, error) {
	now := time.Now()
	ack, err := p.send(ctx)
	if err != nil {
		return Published{}, err
	}
	if !strings.HasPrefix(ack.Stream, p.Policy.Names.LevelStream("")) {
		return Published{}, fmt.Errorf("publish to %s: the stream %s stored the message, and is not a stream of the broker",
			p.Message.Subject, ack.Stream)
	}
	m := Published{
		Stream: ack.Stream, Sequence: ack.Sequence, Subject: p.Message.Subject, Duplicate: ack.Duplicate, Estimated: true,
	}
	if at, ok := p.storedTime(ctx, ack); ok {
		now, m.Estimated = at, false
	}
	request, _ := p.Parse(m.Stream, m.Sequence, now) // the command has checked the message before the publish
	m.Due = request.Due
	if !m.Estimated {
		m.ID = request.ID
	}
	return m, nil
}

// Parse parses the message as the broker will.
func (p *Publisher) Parse(stream string, sequence uint64, at time.Time) (message.Request, *message.Problem) {
	return p.Policy.Parse(message.Incoming{
		Stream: stream, Sequence: sequence, At: at, Subject: p.Message.Subject, Header: message.Header(p.Message.Header),
	})
}

// ttlDisabled is the error code of a publish with Nats-TTL on a stream without per-message TTLs.
const ttlDisabled = 10166

// send publishes the message, and explains a failure. If the server refuses the first publish, the refusal ends the
// parent context and is its cause.
func (p *Publisher) send(parent context.Context) (*jetstream.PubAck, error) {
	ctx, cancel := context.WithTimeout(parent, ackTimeout)
	defer cancel()
	m := *p.Message // a copy, because the client library may add headers
	ack, err := p.Session.JetStream.PublishMsg(ctx, &m)
	refusal, subject := context.Cause(ctx), p.Message.Subject
	apiErr, refused := errors.AsType[*jetstream.APIError](err)
	switch {
	case err == nil:
		return ack, nil
	case errors.Is(err, jetstream.ErrNoStreamResponse):
		return nil, p.explainNoStream(parent)
	case errors.Is(refusal, nats.ErrPermissionViolation):
		return nil, fmt.Errorf("publish to %s: %w", subject, refusal)
	case errors.Is(refusal, context.DeadlineExceeded):
		return nil, fmt.Errorf("publish to %s: no answer within %s; a server does not answer a publish that it refuses",
			subject, ackTimeout)
	case refused && apiErr.ErrorCode == ttlDisabled:
		return nil, fmt.Errorf("publish to %s: Nats-TTL is reserved for the server: use Delay-TTL, which becomes Nats-TTL "+
			"at the target", subject)
	case refused:
		return nil, fmt.Errorf("publish to %s: %s (%d)", subject, apiErr.Description, apiErr.ErrorCode)
	}
	return nil, fmt.Errorf("publish to %s: %w", subject, err)
}

// explainNoStream explains why no stream takes the message, as far as the user's permissions allow.
func (p *Publisher) explainNoStream(ctx context.Context) error {
	if err := p.Session.CheckJetStream(ctx); err != nil {
		return fmt.Errorf("publish to %s: %w", p.Message.Subject, err)
	}
	err := fmt.Errorf("no stream takes %s: the level or duration does not exist,"+
		" or no broker with the prefix %q has created its streams in this account",
		p.Message.Subject, p.Policy.Names.Prefix())
	if prefixes := p.Session.Prefixes(ctx); len(prefixes) > 0 && !slices.Contains(prefixes, p.Policy.Names.Prefix()) {
		err = fmt.Errorf("%w; there are streams of the prefix %s: set DELAY_PREFIX", err,
			text.Printable(strings.Join(prefixes, ", "), 200))
	}
	return err
}

// storedTime requests the time at which a stream stored a message. It returns false without that time: the user may not
// request the time, the server does not answer, or a broker has already moved or delivered the message.
func (p *Publisher) storedTime(ctx context.Context, ack *jetstream.PubAck) (time.Time, bool) {
	if p.timeForbidden.Load() {
		return time.Time{}, false
	}
	ctx, cancel := context.WithTimeout(ctx, storedTimeout)
	defer cancel()
	stored, err := p.Session.Message(ctx, ack.Stream, ack.Sequence)
	p.timeForbidden.Store(err != nil && !errors.Is(err, jetstream.ErrMsgNotFound))
	return stored.At, err == nil
}
