package trace

import (
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/trace"

	"delaybroker/broker/message"
)

const (
	parentHeader = "traceparent"
	stateHeader  = "tracestate"
	// maxState is the maximum size of a tracestate that the span gets, in bytes. The W3C recommendation asks programs to
	// pass on a tracestate up to this size.
	maxState = 512
)

// parentOf returns the producer's span context and its trace state, from the headers. Header names are
// case-insensitive: JetStream's clients write Traceparent or traceparent. A message with two traceparents, or with an
// invalid one, has no parent.
func parentOf(h message.Header) (parent trace.SpanContext, state string) {
	if parent = parse(value(h, parentHeader)); !parent.IsValid() {
		return parent, ""
	}
	if state = value(h, stateHeader); len(state) > maxState {
		state = ""
	}
	return parent, state
}

// value returns the value of a header that occurs exactly once, or "".
func value(h message.Header, name string) string {
	found := ""
	for k, vs := range h {
		if len(k) != len(name) || !strings.EqualFold(k, name) {
			continue
		}
		if found != "" || len(vs) != 1 {
			return ""
		}
		found = vs[0]
	}
	return found
}

// parse parses a traceparent, as the W3C recommendation defines it. It returns the zero context if s is not valid. A
// version above 00 may have more fields after another hyphen. An example:
//
//	00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01
func parse(s string) trace.SpanContext {
	const version, traceID, spanID, flags, end = 0, 3, 36, 53, 55
	if len(s) < end || s[2] != '-' || s[35] != '-' || s[52] != '-' || strings.ContainsAny(s[:end], "ABCDEF") {
		return trace.SpanContext{}
	}
	v, badVersion := strconv.ParseUint(s[version:2], 16, 8)
	f, badFlags := strconv.ParseUint(s[flags:end], 16, 8)
	id, badTrace := trace.TraceIDFromHex(s[traceID:35])
	span, badSpan := trace.SpanIDFromHex(s[spanID:52])
	if badVersion != nil || badFlags != nil || badTrace != nil || badSpan != nil || v == 0xff ||
		v == 0 && len(s) != end || len(s) > end && s[end] != '-' {
		return trace.SpanContext{}
	}
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: id, SpanID: span, TraceFlags: trace.TraceFlags(f) & (trace.FlagsSampled | trace.FlagsRandom), Remote: true,
	})
}
