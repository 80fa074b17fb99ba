package trace

import (
	"context"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"delaybroker/broker"
)

// The names of a span and of its events.
const (
	spanName     = "deliver"
	eventHop     = "hop"
	eventDue     = "due"
	eventRefused = "refused"
)

// The broker's own attributes: see the package comment.
const (
	keyDelay    = attribute.Key("delaybroker.delay")
	keyLate     = attribute.Key("delaybroker.late")
	keyHops     = attribute.Key("delaybroker.hops")
	keyAttempts = attribute.Key("delaybroker.attempts")
	keyAttempt  = attribute.Key("delaybroker.attempt")
	keyLane     = attribute.Key("delaybroker.lane")
	keyReason   = attribute.Key("delaybroker.reason")
)

// pendingSpan is a message that waits for its span.
type pendingSpan struct {
	broker.Ended
	parent trace.SpanContext
	state  string
}

// pendingSpans is a batch of messages that wait for their spans: see [batch.Batch].
type pendingSpans []pendingSpan

// Add adds a message, with a copy of its trace state, which is part of the message's headers.
func (b *pendingSpans) Add(e pendingSpan) {
	e.state = strings.Clone(e.state)
	*b = append(*b, e)
}

// Size returns the number of messages.
func (b *pendingSpans) Size() int { return len(*b) }

// Reset removes all messages.
func (b *pendingSpans) Reset() {
	clear(*b)
	*b = (*b)[:0]
}

// span makes the span of a message. If the sampler samples it, the span is added to t.spans.
func (t *Tracer) span(e *pendingSpan) {
	ctx := context.Background()
	if e.parent.IsValid() {
		if state, err := trace.ParseTraceState(e.state); err == nil {
			e.parent = e.parent.WithTraceState(state)
		}
		ctx = trace.ContextWithSpanContext(ctx, e.parent)
	}
	_, s := t.tracer.Start(ctx, spanName, trace.WithTimestamp(e.Accepted), trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(e.attributes()...))
	end := e.At
	if end.Before(e.Accepted) {
		end = e.Accepted
	}
	defer s.End(trace.WithTimestamp(end))
	if !s.IsRecording() {
		return
	}
	for _, event := range e.events() {
		s.AddEvent(event.name, trace.WithTimestamp(event.at), trace.WithAttributes(event.attributes...))
	}
	if e.Code != "" {
		s.SetAttributes(semconv.ErrorTypeKey.String(string(e.Code)))
		s.SetStatus(codes.Error, validUTF8(e.Reason))
	}
}

func (e *pendingSpan) attributes() []attribute.KeyValue {
	attributes := []attribute.KeyValue{
		semconv.MessagingSystemKey.String("nats"),
		semconv.MessagingOperationName(spanName),
		semconv.MessagingOperationTypeSend,
		semconv.MessagingMessageID(validUTF8(e.ID)),
		semconv.MessagingMessageBodySize(e.Size),
		keyHops.Int(e.Hops),
		keyAttempts.Int(e.Attempts()),
		keyLane.String(e.Lane),
	}
	if e.Target != "" {
		attributes = append(attributes, semconv.MessagingDestinationName(validUTF8(e.Target)))
	}
	if !e.Due.IsZero() {
		attributes = append(attributes, keyDelay.Float64(e.Due.Sub(e.Accepted).Seconds()),
			keyLate.Float64(e.Lateness.Seconds()))
	}
	return attributes
}

// event is an event in the life of a message.
type event struct {
	name       string
	at         time.Time
	attributes []attribute.KeyValue
}

// events returns the events in the order of their times. If a refusal and the hop that it caused have the same time,
// the refusal comes first.
func (e *pendingSpan) events() []event {
	var events []event
	if !e.Due.IsZero() {
		events = append(events, event{eventDue, e.Due, nil})
	}
	if e.Refusals > 1 && !e.FirstRefusal.IsZero() {
		events = append(events, event{eventRefused, e.FirstRefusal, []attribute.KeyValue{keyAttempt.Int(1)}})
	}
	if e.Refusals > 0 && !e.LastRefusal.IsZero() {
		attributes := []attribute.KeyValue{keyAttempt.Int(e.Refusals)}
		if e.Code == "" { // otherwise, Reason is that of the dead letter, which the status has
			attributes = append(attributes, keyReason.String(validUTF8(e.Reason)))
		}
		events = append(events, event{eventRefused, e.LastRefusal, attributes})
	}
	if e.Hops > 0 {
		events = append(events, event{eventHop, e.Stored, []attribute.KeyValue{keyHops.Int(e.Hops), keyLane.String(e.Lane)}})
	}
	slices.SortStableFunc(events, func(a, b event) int { return a.at.Compare(b.at) })
	return events
}

// validUTF8 returns s as valid UTF-8. A reason may quote a server or a service, so it may contain any bytes.
func validUTF8(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// collectedSpans is a span processor that collects the spans. Only Run's goroutine uses it.
type collectedSpans struct{ spans []sdk.ReadOnlySpan }

// OnEnd collects a span.
func (m *collectedSpans) OnEnd(s sdk.ReadOnlySpan) { m.spans = append(m.spans, s) }

// OnStart, Shutdown and ForceFlush do nothing, since Run stops the exporter.
func (m *collectedSpans) OnStart(context.Context, sdk.ReadWriteSpan) {}
func (m *collectedSpans) Shutdown(context.Context) error             { return nil }
func (m *collectedSpans) ForceFlush(context.Context) error           { return nil }
