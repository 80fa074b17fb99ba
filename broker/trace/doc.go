// Package trace makes a span of each message, from its acceptance to its delivery or its dead letter, and sends the
// spans to an OpenTelemetry collector.
//
//	lanes' loops ── Ended ──▶ [queue, bounded] ── Run ──▶ spans, 512 at a time ──▶ OTLP over HTTP
//	                    └─ no room: dropped, and counted        └─ refused: dropped, and counted
//
// # Invariants
//
//   - No delivery waits for a span. Ended takes as long as reading one header. What finds no room is dropped.
//   - The headers of a message are not touched: the target gets the producer's own traceparent. So the consumer's span
//     is a child of the producer's, as without a broker in between.
//   - A header that a client wrote can make a span, and nothing else. What is no traceparent counts as none, and what
//     stands in a span is valid UTF-8: the encoder refuses a whole batch because of one bad byte.
//   - A producer that does not sample makes no span, unless OTEL_TRACES_SAMPLER says otherwise.
//
// # The span
//
// A message passes several instances and restarts, so its span is made at the end, by the instance that delivered it,
// of what travelled with the message. It is a child of the span whose context the producer has put into the header
// traceparent, and in its trace:
//
//	producer's span ──┬── deliver (ours)      from the acceptance until the target had it
//	                  └── consumer's span     as its own instrumentation makes it, of the same header
//
// Without a traceparent the span is a root, if the sampler wants it. Names are those of the semantic conventions for
// messaging; the kind is CLIENT, since the span's own context goes to nobody. A span is called "deliver", and no more,
// because a subject often has ids in it: the target is an attribute.
//
//	messaging.destination.name     target
//	messaging.message.id           Delay-Id
//	messaging.message.body.size    bytes
//	delaybroker.delay              seconds from acceptance to due
//	delaybroker.late               seconds of lateness, as in the journal
//	delaybroker.hops               publishes into lanes on its way, retries included
//	delaybroker.attempts           deliveries that the target answered
//	delaybroker.lane               stream that it was delivered from
//	error.type                     code of a dead letter; then the status is an error
//
// Its events are what a message still knows when it arrives: the last hop, when it was due, the first and the last
// refusal, with the reason. The times of the hops in between are nowhere: headers do not grow on the way.
//
// A copy, as after a crash, is a delivery of its own, and has a span of its own.
//
// # What was tried and rejected
//
//   - A root span with a link to the producer's. Who looks at a trace to learn why an order was closed late would have
//     to follow the link backwards. The price of a child is that it comes long after its parent: a collector that
//     decides on a trace after a minute (tail sampling) has to decide on this span by itself.
//   - A span for each hop. It would have to be sent when the hop is made, and four spans of one message tell no more
//     about it than their number.
//   - To put the context of the broker's span into the delivered message. The promise that headers pass would be broken
//     for everybody, and the span of the producer would be no parent any more.
//   - The batch processor of the SDK. Spans would be made on the loops of the lanes, which takes eight times as long as
//     Ended (BenchmarkSpan, BenchmarkEnded), and nobody is told how many it drops.
package trace
