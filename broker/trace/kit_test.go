package trace

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"

	"delaybroker/broker"
	"delaybroker/broker/message"
)

// collector is an exporter that keeps the spans.
type collector struct {
	wait chan struct{} // each export waits until this channel is closed; if nil, no export waits
	err  error         // the result of each export

	mu    sync.Mutex // guards spans
	spans []sdk.ReadOnlySpan
}

func (c *collector) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	if c.wait != nil {
		select {
		case <-c.wait:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.spans = append(c.spans, spans...)
	}
	return c.err
}

func (c *collector) Shutdown(context.Context) error { return nil }

func newTracer(t testing.TB, c sdk.SpanExporter, env ...string) *Tracer {
	t.Helper()
	return newLoggingTracer(t, c, slog.New(slog.NewTextHandler(t.Output(), nil)), env...)
}

func newLoggingTracer(t testing.TB, c sdk.SpanExporter, log *slog.Logger, env ...string) *Tracer {
	t.Helper()
	tr, err := New(Config{Version: "v1.2.3", Environment: environment(env...), Log: log, Exporter: c})
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// run starts a tracer. Stop stops the tracer, and waits for its end.
func run(tr *Tracer) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { tr.Run(ctx) })
	return func() {
		cancel()
		running.Wait()
	}
}

// endedMessage returns a message with the given headers, each a name and a value. The message was delivered at its due
// time, a second after its acceptance.
func endedMessage(headers ...string) broker.Ended {
	now := time.Now()
	h := message.Header{}
	for pair := range slices.Chunk(headers, 2) {
		h[pair[0]] = []string{pair[1]}
	}
	return broker.Ended{
		Ending:   message.Ending{ID: "DELAY_1s-1-5", Target: "orders.a", At: now.Add(time.Second), Due: now.Add(time.Second)},
		Accepted: now, Header: h, Size: 3, Lane: "DELAY_1s", Stored: now,
	}
}

func wantCounts(t *testing.T, tr *Tracer, sent, dropped uint64) {
	t.Helper()
	if s, d := tr.Counts(); s != sent || d != dropped {
		t.Errorf("%d sent and %d dropped, want %d and %d", s, d, sent, dropped)
	}
}
