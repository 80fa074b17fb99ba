package harness

import (
	"context"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/test/natstest"
)

func (c *Client) Target(name string, subjects ...string) jetstream.Stream {
	c.T.Helper()
	return c.Create(jetstream.StreamConfig{Name: name, Subjects: subjects})
}

func Pending(c *Client, stream string) uint64 {
	c.T.Helper()
	return c.Stream(stream).CachedInfo().State.Msgs
}

// DeleteConsumer deletes the consumer of a stream. It fails the test unless the stream has exactly one consumer.
func (c *Client) DeleteConsumer(stream string) {
	c.T.Helper()
	ctx := context.Background()
	s := c.Stream(stream)
	n := 0
	for info := range s.ListConsumers(ctx).Info() {
		natstest.NoError(c.T, s.DeleteConsumer(ctx, info.Name))
		n++
	}
	if n != 1 {
		c.T.Fatalf("%s has %d consumers, want only that of the broker", stream, n)
	}
}

// Stream returns an existing stream, with its current state.
func (c *Client) Stream(name string) jetstream.Stream {
	c.T.Helper()
	s, err := c.JS.Stream(context.Background(), name)
	if err != nil {
		c.T.Fatalf("stream %s: %v", name, err)
	}
	return s
}

func (c *Client) Create(cfg jetstream.StreamConfig) jetstream.Stream {
	c.T.Helper()
	s, err := c.JS.CreateStream(context.Background(), cfg)
	if err != nil {
		c.T.Fatalf("create stream %s: %v", cfg.Name, err)
	}
	return s
}

func (c *Client) Reconfigure(name string, change func(*jetstream.StreamConfig)) {
	c.T.Helper()
	natstest.Reconfigure(c.T, c.JS, name, change)
}

func (c *Client) Purge(name string) {
	c.T.Helper()
	if err := c.Stream(name).Purge(context.Background()); err != nil {
		c.T.Fatalf("purge stream %s: %v", name, err)
	}
}

// Remove deletes a stream, and returns its configuration.
func (c *Client) Remove(name string) jetstream.StreamConfig {
	c.T.Helper()
	cfg := c.Stream(name).CachedInfo().Config
	if err := c.JS.DeleteStream(context.Background(), name); err != nil {
		c.T.Fatalf("delete stream %s: %v", name, err)
	}
	return cfg
}

// Limit is a limit of JetStream. Reach makes the server refuse publishes, and Lift ends the refusals.
type Limit struct {
	Reach, Lift func()
	Code        jetstream.ErrorCode // of the refusals
}

func StorageLimit(c *Client, s *natstest.Server) Limit {
	return AccountLimit(c, s, func(l *server.JetStreamAccountLimits) { l.MaxStore = 0 })
}

// AccountLimit returns a limit of the account. The function reach changes the limits so that the account is at the
// limit.
func AccountLimit(c *Client, s *natstest.Server, reach func(*server.JetStreamAccountLimits)) Limit {
	limit := func(change func(*server.JetStreamAccountLimits)) {
		c.T.Helper()
		limits := server.JetStreamAccountLimits{MaxMemory: -1, MaxStore: -1, MaxStreams: -1, MaxConsumers: -1,
			MaxAckPending: -1, MemoryMaxStreamBytes: -1, StoreMaxStreamBytes: -1}
		change(&limits)
		all := map[string]server.JetStreamAccountLimits{"": limits}
		if err := s.Server().GlobalAccount().UpdateJetStreamLimits(all); err != nil {
			c.T.Fatalf("change the account's limits: %v", err)
		}
	}
	return Limit{Code: 10002, Reach: func() { limit(reach) },
		Lift: func() { limit(func(*server.JetStreamAccountLimits) {}) }}
}
