package client

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/message"
)

// A Client publishes delayed messages. It owns no connection, and is safe for concurrent use. It starts no goroutine,
// but each message of a [Publisher] has one.
type Client struct {
	store  Store
	policy message.Policy
	levels *levelGuess

	timeout time.Duration
}

// New returns a client that publishes on the connection of js. Functions that read streams use the domain or API prefix
// of js. New sends nothing to the server.
func New(js jetstream.JetStream, cfg Config) (*Client, error) {
	store, err := newJetStream(js, cfg.withDefaults().Timeout)
	if err != nil {
		return nil, err
	}
	return NewOn(store, cfg)
}

// NewOn returns a client that publishes to a store. It is for package clienttest. Programs call New.
func NewOn(store Store, cfg Config) (*Client, error) {
	cfg = cfg.withDefaults()
	names, ladder, err := cfg.check()
	if err != nil {
		return nil, err
	}
	return &Client{
		store: store, levels: newLevelGuess(ladder), timeout: cfg.Timeout,
		policy: message.Policy{
			Names: names, MaxDelay: cfg.MaxDelay, Targets: cfg.Targets,
			Attempts: func(string) int { return cfg.Attempts },
		},
	}, nil
}

// In publishes a message that is delivered to target after a delay, and waits until the message is stored. The delay
// begins when the first stream stores the message, by the clock of the server. The client rounds the delay up to the
// next millisecond. A negative delay counts as zero.
func (c *Client) In(
	ctx context.Context, target string, delay time.Duration, body []byte, opts ...Option,
) (Receipt, error) {
	return c.publish(ctx, c.delayAddress(target, delay), body, opts)
}

// At publishes a message that is delivered to target at a time, by the clock of the server, and waits until the message
// is stored. The client rounds the time up to the next millisecond, unless the message is a named timer. If the time
// has passed, the message is due immediately.
func (c *Client) At(ctx context.Context, target string, due time.Time, body []byte, opts ...Option) (Receipt, error) {
	return c.publish(ctx, c.timeAddress(target, due), body, opts)
}

// Level publishes a message that is delivered to target after the delay of the named level, such as "30m". If no level
// has that name, the name is parsed as a duration. With an ID, a duration that is neither a level nor a plain duration
// fails with ErrNoBroker.
func (c *Client) Level(ctx context.Context, target, level string, body []byte, opts ...Option) (Receipt, error) {
	return c.publish(ctx, c.levelAddress(target, level), body, opts)
}

func (c *Client) publish(ctx context.Context, a address, body []byte, opts []Option) (Receipt, error) {
	d, err := c.draft(a, body, opts)
	if err != nil {
		return Receipt{}, err
	}
	return c.send(ctx, d)
}

// send publishes a draft. If no stream listens on the draft's subject, send publishes the fallback, if there is one.
func (c *Client) send(ctx context.Context, d *draft) (Receipt, error) {
	if err := ctx.Err(); err != nil {
		return Receipt{}, err // nothing was published
	}
	ctx, cancel := c.withTimeout(ctx)
	defer cancel()
	ack, err := c.store.PublishMsg(ctx, d.msg, d.retries()...)
	if d.fallsBack(err) {
		c.levels.recordMiss(d.guessedLevel, c.store.Now())
		ack, err = c.store.PublishMsg(ctx, d.fallback)
	}
	return c.receipt(d, ack, err)
}

func (c *Client) receipt(d *draft, ack *jetstream.PubAck, err error) (Receipt, error) {
	switch {
	case err != nil:
		return Receipt{}, explain(d, err, c.store.Refusal)
	case ack.Sequence == 0 || !c.policy.Names.OwnsStream(ack.Stream):
		return Receipt{}, fmt.Errorf("%w: the stream %q stored %s", ErrForeign, ack.Stream, d.msg.Subject)
	case d.timer.isTimer && !d.answeredBy(ack):
		return Receipt{}, fmt.Errorf("%w: the acknowledgement of %s is %+v", ErrForeign, d.msg.Subject, *ack)
	}
	r := Receipt{Stream: ack.Stream, Sequence: ack.Sequence, Duplicate: ack.Duplicate, Due: d.due}
	if d.timer.isTimer {
		r.Key, r.target, r.client = d.timer.key, d.target, c
	}
	return r, nil
}

// withTimeout returns a context that the caller can cancel, with the client's timeout if ctx has no deadline.
func (c *Client) withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, c.timeout)
}
