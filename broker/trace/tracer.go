package trace

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"delaybroker/broker"
	"delaybroker/broker/batch"
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
	sent atomic.Uint64 // spans that the collector has accepted

	log         *slog.Logger
	exporter    sdk.SpanExporter
	tracer      trace.Tracer
	queue       *batch.Queue[pendingSpan, pendingSpans, *pendingSpans]
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
		timeout: env.milliseconds(envTimeout, defaultTimeout), queue: batch.New[pendingSpan, pendingSpans](env.limits()),
	}
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
	e.Header = nil // it may be large
	t.queue.Add(pendingSpan{e, parent, state})
}

// Counts returns the number of spans that the collector has accepted, and the number of dropped spans. It is safe for
// concurrent use.
func (t *Tracer) Counts() (sent, dropped uint64) { return t.sent.Load(), t.queue.Dropped() }

// Run sends spans until ctx ends. Then it sends the queued spans, for at most one second.
func (t *Tracer) Run(ctx context.Context) {
	t.queue.Run(ctx, func() time.Duration { return flushTimeout }, t.send)
	shutdown, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
	defer cancel()
	if err := t.exporter.Shutdown(shutdown); err != nil {
		t.log.Debug("cannot shut down the exporter of spans", "err", err)
	}
	if sent, dropped := t.Counts(); dropped > 0 {
		t.log.Info("spans were dropped", "dropped", dropped, "sent", sent)
	}
}

// send makes the spans of a batch, and sends them. It returns the number of spans that it could not send. If the
// collector is busy, the exporter retries until the timeout.
func (t *Tracer) send(ctx context.Context, b *pendingSpans, _ time.Time) (dropped int) {
	for i := range *b {
		t.span(&(*b)[i])
	}
	spans := t.spans.spans
	t.spans.spans = nil
	if len(spans) == 0 {
		return 0
	}
	ctx, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	err := t.exporter.ExportSpans(ctx, spans)
	if err == nil {
		t.sent.Add(uint64(len(spans)))
		return 0
	}
	if _, ok := t.logLimit.Allow(logInterval); ok {
		t.log.Warn("cannot send spans to the collector; these spans are dropped, and deliveries continue",
			"dropped", t.queue.Dropped()+uint64(len(spans)), "err", err)
	}
	return len(spans)
}
