package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/message"
	"delaybroker/levels"
)

// What a broker has unless its settings say otherwise.
const (
	DefaultMaxDelay = 366 * 24 * time.Hour
	DefaultAttempts = 20
	DefaultTimeout  = 5 * time.Second
)

// Config is what a client must know of the installation. The zero Config is right for a broker with its default
// settings, and for most others.
type Config struct {
	// Prefix is the broker's DELAY_PREFIX. Defaults to message.DefaultPrefix.
	Prefix string
	// Levels are the broker's levels, as in DELAY_LEVELS: "default", or names such as "30s 5m 97m". They only save a hop:
	// without them, or with old ones, every delay is as exact. Defaults to what finds the levels of most installations.
	// See [Client.ReadLevels].
	Levels string
	// MaxDelay is the broker's DELAY_MAX_DELAY. What is later fails here, with ErrTooFar. Defaults to DefaultMaxDelay.
	MaxDelay time.Duration
	// Attempts is the broker's DELAY_ATTEMPTS, and the most that MaxAttempts may say. Defaults to DefaultAttempts.
	Attempts int
	// Targets are the broker's DELAY_TARGETS: subjects, with wildcards. Empty allows all.
	Targets []string
	// Timeout is how long a publish may take when its context has no deadline. Defaults to DefaultTimeout.
	Timeout time.Duration
}

// A Client asks for delays. It starts no goroutine, holds no connection of its own, and is safe for concurrent use.
type Client struct {
	store  Store
	policy message.Policy
	levels *ladder

	timeout time.Duration
}

// New returns a client that publishes on the connection of js. The domain or API prefix of js is used by Look and
// ReadLevels. It asks the server nothing.
func New(js jetstream.JetStream, cfg Config) (*Client, error) {
	timeout := cfg.Timeout
	if timeout == 0 {
		timeout = DefaultTimeout
	}
	store, err := newJetStream(js, timeout)
	if err != nil {
		return nil, err
	}
	return NewOn(store, cfg)
}

// NewOn returns a client of another store. It is for package clienttest; programs call New.
func NewOn(store Store, cfg Config) (*Client, error) {
	or(&cfg.Prefix, message.DefaultPrefix)
	or(&cfg.MaxDelay, DefaultMaxDelay)
	or(&cfg.Attempts, DefaultAttempts)
	or(&cfg.Timeout, DefaultTimeout)
	var problems []error
	names, err := message.NewNames(cfg.Prefix)
	if err != nil {
		problems = append(problems, fmt.Errorf("Prefix: %w", err))
	}
	known := levels.Ladder{}
	if cfg.Levels != "" {
		if known, err = levels.Parse(cfg.Levels); err != nil {
			problems = append(problems, fmt.Errorf("Levels: %w", err))
		}
	}
	for _, t := range cfg.Targets {
		if !message.ValidPattern(t) {
			problems = append(problems, fmt.Errorf("Targets: %q is no subject", t))
		}
	}
	if cfg.MaxDelay < 0 || cfg.Attempts < 0 || cfg.Timeout < 0 {
		problems = append(problems, fmt.Errorf("MaxDelay %s, Attempts %d and Timeout %s: none may be negative", cfg.MaxDelay,
			cfg.Attempts, cfg.Timeout))
	}
	if len(problems) > 0 {
		return nil, fmt.Errorf("%w: %w", ErrConfig, errors.Join(problems...))
	}
	return &Client{
		store: store, levels: newLadder(known), timeout: cfg.Timeout,
		policy: message.Policy{
			Names: names, MaxDelay: cfg.MaxDelay, Targets: cfg.Targets,
			Attempts: func(string) int { return cfg.Attempts },
		},
	}, nil
}

func or[T comparable](v *T, standard T) {
	if *v == *new(T) {
		*v = standard
	}
}

// In publishes a message that is delivered to target after a delay, and waits until it is stored. The delay begins when
// the first stream stores it, by the clock of the server. It is rounded up to a millisecond, and one that is negative is
// none.
func (c *Client) In(
	ctx context.Context, target string, delay time.Duration, body []byte, opts ...Option,
) (Receipt, error) {
	return c.now(ctx, c.in(target, delay), body, opts)
}

// At publishes a message that is delivered to target at a time, by the clock of the server, and waits until it is
// stored. The time is rounded up to a millisecond. One that is past means at once.
func (c *Client) At(ctx context.Context, target string, at time.Time, body []byte, opts ...Option) (Receipt, error) {
	return c.now(ctx, c.at(target, at), body, opts)
}

// Level publishes a message that is delivered to target after the delay of a level, by its name, such as "30m". A name
// that is no level's means the same duration.
func (c *Client) Level(ctx context.Context, target, level string, body []byte, opts ...Option) (Receipt, error) {
	return c.now(ctx, c.level(target, level), body, opts)
}

// now publishes a request and waits for the answer.
func (c *Client) now(ctx context.Context, a ask, body []byte, opts []Option) (Receipt, error) {
	d, err := c.draft(a, body, opts)
	if err != nil {
		return Receipt{}, err
	}
	if err := ctx.Err(); err != nil {
		return Receipt{}, err // nothing was published
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.timeout)
		defer cancel()
	}
	ack, err := c.store.PublishMsg(ctx, d.msg, d.retries()...)
	if d.spared(err) {
		c.levels.missed(d.token, c.store.Now())
		ack, err = c.store.PublishMsg(ctx, d.spare)
	}
	return c.receipt(d, ack, err)
}

// receipt judges the answer to a request.
func (c *Client) receipt(d *draft, ack *jetstream.PubAck, err error) (Receipt, error) {
	switch {
	case err != nil:
		return Receipt{}, explain(d, err, c.store.Refusal)
	case ack.Sequence == 0 || !c.policy.Names.Own(ack.Stream):
		return Receipt{}, fmt.Errorf("%w: the stream %q took %s", ErrForeign, ack.Stream, d.msg.Subject)
	}
	return Receipt{Stream: ack.Stream, Sequence: ack.Sequence, Duplicate: ack.Duplicate, Due: d.due}, nil
}
