package trace

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"delaybroker/broker"
	"delaybroker/broker/ratelog"
)

const (
	// serviceName is the service.name attribute, unless the environment sets another name.
	serviceName = "delaybroker"
	// flushTimeout is the maximum time for which Run sends spans after ctx has ended: traces must not delay a restart.
	flushTimeout = time.Second
	// logInterval is the minimum time between two log lines about dropped spans.
	logInterval = time.Minute
)

// Config is the configuration of a Tracer.
type Config struct {
	Version     string // the program's version
	Environment Environment
	Log         *slog.Logger
	// Exporter sends the spans. The default is OTLP over HTTP, configured by the environment of the process.
	Exporter sdk.SpanExporter
}

// Tracer makes the spans of messages. Run sends the spans.
type Tracer struct {
	sent    atomic.Uint64 // spans that the collector has accepted
	dropped atomic.Uint64 // messages that found no room in the queue, and spans that could not be sent

	log         *slog.Logger
	exporter    sdk.SpanExporter
	tracer      trace.Tracer
	queue       queue
	spans       collectedSpans
	timeout     time.Duration // the timeout of an export
	parentBased bool          // if the producer's context is not sampled, there is no span
	logLimit    ratelog.Limit
}

// New returns a tracer. Ended may be called before Run. New makes cfg.Log the destination of OpenTelemetry's own
// errors, for the whole process.
func New(cfg Config) (*Tracer, error) {
	env := cfg.Environment
	t := &Tracer{
		log: cfg.Log, exporter: cfg.Exporter, parentBased: env.parentBased(),
		timeout: env.milliseconds(envTimeout, defaultTimeout),
		queue: queue{
			capacity: env.number(envQueue, defaultQueue, maxQueue), batch: env.number(envBatch, defaultBatch, maxQueue),
			delay: env.milliseconds(envDelay, defaultDelay), wake: make(chan struct{}, 1),
		},
	}
	t.queue.batch = min(t.queue.batch, t.queue.capacity)
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		t.log.Warn("OpenTelemetry reports an error", "err", err)
	}))
	res, err := resourceOf(cfg.Version)
	if err != nil {
		t.log.Warn("cannot read all attributes of the spans' resource; spans are sent without the missing ones", "err", err)
	}
	if t.exporter == nil {
		if t.exporter, err = otlptracehttp.New(context.Background()); err != nil { // it connects at the first request
			return nil, fmt.Errorf("cannot create the exporter of spans: %w", err)
		}
	}
	provider := sdk.NewTracerProvider(sdk.WithResource(res), sdk.WithSpanProcessor(&t.spans))
	t.tracer = provider.Tracer("delaybroker", trace.WithInstrumentationVersion(cfg.Version),
		trace.WithSchemaURL(semconv.SchemaURL))
	return t, nil
}

// resourceOf returns the resource of the spans. OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES replace the defaults.
func resourceOf(version string) (*resource.Resource, error) {
	return resource.New(context.Background(),
		resource.WithTelemetrySDK(), resource.WithHost(),
		resource.WithAttributes(semconv.ServiceName(serviceName), semconv.ServiceVersion(version)),
		resource.WithFromEnv())
}

// Ended queues the span of a message that was delivered or became a dead letter. It blocks only for a mutex, and is
// safe for concurrent use.
func (t *Tracer) Ended(e broker.Ended) {
	parent, state := parentOf(e.Header)
	if t.parentBased && parent.IsValid() && !parent.IsSampled() {
		return
	}
	e.Header = nil
	if !t.queue.add(pendingSpan{e, parent, state}, time.Now()) {
		t.dropped.Add(1)
	}
}

// Counts returns the number of spans that the collector has accepted, and the number of dropped spans. It is safe for
// concurrent use.
func (t *Tracer) Counts() (sent, dropped uint64) { return t.sent.Load(), t.dropped.Load() }

// Run sends spans until ctx ends. Then it sends the queued spans, for at most one second.
func (t *Tracer) Run(ctx context.Context) {
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(flushTimeout, stop) })()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		queued, wait := t.queue.take(time.Now(), false)
		if len(queued) > 0 {
			t.send(work, queued)
			continue
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
		case <-t.queue.wake:
		case <-timer.C:
		}
	}
	queued, _ := t.queue.take(time.Now(), true)
	t.send(work, queued)
	if err := t.exporter.Shutdown(work); err != nil {
		t.log.Debug("cannot shut down the exporter of spans", "err", err)
	}
	if dropped := t.dropped.Load(); dropped > 0 {
		t.log.Info("spans were dropped", "dropped", dropped, "sent", t.sent.Load())
	}
}

// send makes the spans, and sends them in batches.
func (t *Tracer) send(ctx context.Context, pending []pendingSpan) {
	for batch := range slices.Chunk(pending, t.queue.batch) {
		for i := range batch {
			t.span(&batch[i])
		}
		if spans := t.spans.take(); len(spans) > 0 {
			t.export(ctx, spans)
		}
		t.queue.release(len(batch))
	}
	t.queue.recycle(pending)
}

// export sends one batch. If the collector is busy, the exporter retries until the timeout.
func (t *Tracer) export(ctx context.Context, spans []sdk.ReadOnlySpan) {
	ctx, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	err := t.exporter.ExportSpans(ctx, spans)
	if err == nil {
		t.sent.Add(uint64(len(spans)))
		return
	}
	t.dropped.Add(uint64(len(spans)))
	if _, ok := t.logLimit.Allow(logInterval); ok {
		t.log.Warn("cannot send spans to the collector; these spans are dropped, and deliveries continue",
			"dropped", t.dropped.Load(), "err", err)
	}
}
