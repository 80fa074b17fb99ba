// Package trace makes one span for each sampled message, from its acceptance to its delivery or dead letter, and sends
// the spans to an OpenTelemetry collector.
//
//	lanes' loops ── Ended ──▶ [queue, bounded] ── Run ──▶ spans, 512 at a time ──▶ OTLP over HTTP
//	                    └─ no room: dropped, and counted        └─ refused: dropped, and counted
//
// # Invariants
//
//   - No delivery waits for a span. If the queue is full, the span is dropped.
//   - The broker does not change the headers of a message: the target gets the producer's own traceparent. So the
//     consumer's span is a child of the producer's span, as without a broker.
//   - The headers of a message affect only the span of this message. An invalid traceparent counts as absent. All text
//     in a span is valid UTF-8: the encoder refuses a whole batch because of one invalid byte.
//   - If the producer's context is not sampled, there is no span, unless OTEL_TRACES_SAMPLER sets a sampler that
//     ignores the producer's decision.
//
// # The span
//
// A message may pass through several instances. Only the instance that delivers the message, or stores its dead letter,
// makes the span, from the message's headers. The parent of this span is the producer's span, whose context is in the
// header traceparent:
//
//	producer's span ──┬── deliver (broker's)  from the acceptance until the target had the message
//	                  └── consumer's span     made by the consumer's instrumentation from the same header
//
// Without a traceparent the span is a root span, if the sampler samples it. Names follow the semantic conventions for
// messaging. The kind is CLIENT, because the span's own context is not propagated. Every span has the name "deliver",
// without the subject, because a subject often contains ids. The target is an attribute.
//
//	messaging.destination.name     target
//	messaging.message.id           Delay-Id
//	messaging.message.body.size    bytes
//	delaybroker.delay              seconds from acceptance to due
//	delaybroker.late               seconds of lateness, as in the journal
//	delaybroker.hops               number of the broker's publishes of the message into lanes
//	delaybroker.attempts           number of refusals, plus one for a delivered message
//	delaybroker.lane               stream in which the message was at its end
//	error.type                     code of a dead letter; then the status is an error
//
// The events of a span are the last hop, the due time, the first refusal and the last refusal. The event of the last
// refusal has its reason if the message was delivered. For a dead letter, the status has the reason of the dead letter.
// At the delivery, the headers of the message still contain these facts. The headers do not contain the times of
// earlier hops, because the headers would then grow with each hop.
//
// A duplicate, as after a crash, is a separate delivery and has its own span.
//
// # Tried and rejected
//
//   - A root span with a link to the producer's span. An engineer who reads a trace to find out why an order was closed
//     late would have to follow the link backwards. A child span has one disadvantage: it ends long after its parent.
//     So a collector with tail sampling, which decides on a trace after a minute, decides on the child span separately.
//   - A span for each hop. The broker would have to send each span at the time of its hop, and the spans of four hops
//     have no more information than the number of hops.
//   - The context of the broker's span in the delivered message. This would break the promise that headers are
//     unchanged, and the producer's span would no longer be the parent of the consumer's span.
//   - The batch processor of the SDK. The loops of the lanes would make the spans, which takes eight times as long as a
//     call of Ended (BenchmarkSpan, BenchmarkEnded). Also, the processor does not report the number of dropped spans.
package trace
