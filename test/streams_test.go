package test

import (
	"context"

	"github.com/nats-io/nats.go/jetstream"
)

// This file is what tests look at of streams, and do to them.

// stream is one that exists, as it is now.
func (c *client) stream(name string) jetstream.Stream {
	c.t.Helper()
	s, err := c.js.Stream(context.Background(), name)
	if err != nil {
		c.t.Fatalf("stream %s: %v", name, err)
	}
	return s
}

// create makes a stream.
func (c *client) create(cfg jetstream.StreamConfig) jetstream.Stream {
	c.t.Helper()
	s, err := c.js.CreateStream(context.Background(), cfg)
	if err != nil {
		c.t.Fatalf("create stream %s: %v", cfg.Name, err)
	}
	return s
}

// reconfigure changes the configuration of a stream.
func (c *client) reconfigure(name string, change func(*jetstream.StreamConfig)) {
	c.t.Helper()
	cfg := c.stream(name).CachedInfo().Config
	change(&cfg)
	if _, err := c.js.UpdateStream(context.Background(), cfg); err != nil {
		c.t.Fatalf("change stream %s: %v", name, err)
	}
}

// purge removes all messages of a stream.
func (c *client) purge(name string) {
	c.t.Helper()
	if err := c.stream(name).Purge(context.Background()); err != nil {
		c.t.Fatalf("purge stream %s: %v", name, err)
	}
}

// remove deletes a stream, and returns its configuration.
func (c *client) remove(name string) jetstream.StreamConfig {
	c.t.Helper()
	cfg := c.stream(name).CachedInfo().Config
	if err := c.js.DeleteStream(context.Background(), name); err != nil {
		c.t.Fatalf("delete stream %s: %v", name, err)
	}
	return cfg
}
