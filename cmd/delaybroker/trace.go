package main

import (
	"context"
	"log/slog"
	"os"
	"sync"

	"delaybroker/broker/trace"
)

// trace sends a span of each message to the OpenTelemetry collector that the environment names, until the returned
// function is called, which waits for the last. If none is named, nothing is done at all.
func (c *config) trace(version string, log *slog.Logger) (stop func()) {
	none := func() {}
	asked, err := trace.Asked(os.Getenv)
	if err != nil {
		log.Warn("no spans are made", "err", err)
	}
	if !asked {
		return none
	}
	t, err := trace.New(trace.Config{Version: version, Environment: os.Getenv, Log: log})
	if err != nil {
		log.Warn("no spans are made", "err", err)
		return none
	}
	c.broker.Ended, c.spans = t.Ended, t.Counts
	ctx, end := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { t.Run(ctx) })
	return func() {
		end()
		running.Wait()
	}
}
