package process

import (
	"context"
	"os"
	"sync"

	"delaybroker/broker/trace"
)

// trace sends a span of each message to the OpenTelemetry collector that the environment names. The returned function
// sends the last spans before it returns. Without a collector, or after an error, which it logs, trace sends nothing.
func (p *Process) trace() (stop func()) {
	disabled := func() {}
	enabled, err := trace.Enabled(os.Getenv)
	if err != nil {
		p.Log.Warn("the broker runs without tracing", "err", err)
	}
	if !enabled {
		return disabled
	}
	t, err := trace.New(trace.Config{Version: p.Version, Environment: os.Getenv, Log: p.Log})
	if err != nil {
		p.Log.Warn("the broker runs without tracing", "err", err)
		return disabled
	}
	p.Config.Broker.Ended, p.spans = t.Ended, t.Counts
	ctx, end := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { t.Run(ctx) })
	return func() {
		end()
		running.Wait()
	}
}
