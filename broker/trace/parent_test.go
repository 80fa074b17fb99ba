package trace

import (
	"strings"
	"testing"

	"delaybroker/broker/message"
)

const (
	traceID   = "0af7651916cd43dd8448eb211c80319c"
	spanID    = "b7ad6b7169203331"
	sampled   = "00-" + traceID + "-" + spanID + "-01"
	unsampled = "00-" + traceID + "-" + spanID + "-00"
)

// TestParent: parentOf accepts a valid traceparent, with the header's name in any case. It ignores any other value.
func TestParent(t *testing.T) {
	t.Parallel()
	header := func(name, v string) message.Header { return message.Header{name: {v}} }
	for _, tt := range []struct {
		name    string
		header  message.Header
		valid   bool
		sampled bool
	}{
		{"sampled", header("traceparent", sampled), true, true},
		{"not sampled", header("traceparent", unsampled), true, false},
		{"canonical name", header("Traceparent", sampled), true, true},
		{"capital name", header("TRACEPARENT", sampled), true, true},
		{"other flags", header("traceparent", sampled[:53]+"ff"), true, true},
		{"later version", header("traceparent", "cc"+sampled[2:]+"-what-else"), true, true},
		{"none", nil, false, false},
		{"other headers", header("X", "y"), false, false},
		{"empty", header("traceparent", ""), false, false},
		{"no values", message.Header{"traceparent": {}}, false, false},
		{"two values", message.Header{"traceparent": {sampled, unsampled}}, false, false},
		{"two names", message.Header{"traceparent": {sampled}, "Traceparent": {sampled}}, false, false},
		{"too short", header("traceparent", sampled[:54]), false, false},
		{"more fields than version 0 has", header("traceparent", sampled+"-01"), false, false},
		{"a later version, and more text without a hyphen", header("traceparent", "cc"+sampled[2:]+"x"), false, false},
		{"version ff", header("traceparent", "ff"+sampled[2:]), false, false},
		{"no trace", header("traceparent", strings.Replace(sampled, traceID, strings.Repeat("0", 32), 1)), false, false},
		{"no span", header("traceparent", strings.Replace(sampled, spanID, strings.Repeat("0", 16), 1)), false, false},
		{"capital letters", header("traceparent", strings.ToUpper(sampled)), false, false},
		{"no digits", header("traceparent", strings.Replace(sampled, "af", "zz", 1)), false, false},
		{"bytes", header("traceparent", strings.Repeat("\xff", 55)), false, false},
		{"long", header("traceparent", strings.Repeat("0", 8<<10)), false, false},
	} {
		parent, _ := parentOf(tt.header)
		if parent.IsValid() != tt.valid || parent.IsSampled() != tt.sampled {
			t.Errorf("%s: valid %v, sampled %v; want %v, %v", tt.name, parent.IsValid(), parent.IsSampled(), tt.valid,
				tt.sampled)
		}
		if tt.valid && (parent.TraceID().String() != traceID || parent.SpanID().String() != spanID || !parent.IsRemote()) {
			t.Errorf("%s: got %+v, want trace %s, span %s, remote", tt.name, parent, traceID, spanID)
		}
	}
}

// TestTraceStateIsBounded: parentOf returns the trace state of a valid traceparent. It drops a state of more than
// maxState bytes.
func TestTraceStateIsBounded(t *testing.T) {
	t.Parallel()
	long := "a=" + strings.Repeat("x", maxState)
	for _, tt := range []struct {
		parent, state, want string
	}{
		{sampled, "vendor=1,other=2", "vendor=1,other=2"}, {sampled, long, ""}, {"nonsense", "vendor=1", ""},
	} {
		_, got := parentOf(message.Header{"Traceparent": {tt.parent}, "Tracestate": {tt.state}})
		if got != tt.want {
			t.Errorf("%.20s with %.20s: got %q, want %q", tt.parent, tt.state, got, tt.want)
		}
	}
}

func FuzzParent(f *testing.F) {
	f.Add(sampled, "a=b")
	f.Add(unsampled, "")
	f.Fuzz(func(t *testing.T, parent, state string) {
		c, s := parentOf(message.Header{"traceparent": {parent}, "tracestate": {state}})
		if c.IsValid() && !strings.Contains(parent, c.TraceID().String()+"-"+c.SpanID().String()) {
			t.Errorf("%q is parsed as %+v", parent, c)
		}
		if len(s) > maxState {
			t.Errorf("got a trace state of %d bytes, want at most %d", len(s), maxState)
		}
	})
}
