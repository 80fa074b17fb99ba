package trace

import (
	"strings"
	"testing"

	"delaybroker/broker/message"
)

const (
	theTrace = "0af7651916cd43dd8448eb211c80319c"
	theSpan  = "b7ad6b7169203331"
	sampled  = "00-" + theTrace + "-" + theSpan + "-01"
	left     = "00-" + theTrace + "-" + theSpan + "-00" // not sampled
)

// TestParent: a well-formed traceparent is parsed in any spelling of its name. Any other value is ignored.
func TestParent(t *testing.T) {
	t.Parallel()
	of := func(name, v string) message.Header { return message.Header{name: {v}} }
	for _, tt := range []struct {
		name    string
		header  message.Header
		valid   bool
		sampled bool
	}{
		{"sampled", of("traceparent", sampled), true, true},
		{"not sampled", of("traceparent", left), true, false},
		{"canonical name", of("Traceparent", sampled), true, true},
		{"capital name", of("TRACEPARENT", sampled), true, true},
		{"other flags", of("traceparent", sampled[:53]+"ff"), true, true},
		{"later version", of("traceparent", "cc"+sampled[2:]+"-what-else"), true, true},
		{"none", nil, false, false},
		{"other headers", of("X", "y"), false, false},
		{"empty", of("traceparent", ""), false, false},
		{"no values", message.Header{"traceparent": {}}, false, false},
		{"two values", message.Header{"traceparent": {sampled, left}}, false, false},
		{"two names", message.Header{"traceparent": {sampled}, "Traceparent": {sampled}}, false, false},
		{"too short", of("traceparent", sampled[:54]), false, false},
		{"more than version 0 has", of("traceparent", sampled+"-01"), false, false},
		{"no hyphen behind a later version", of("traceparent", "cc"+sampled[2:]+"x"), false, false},
		{"version ff", of("traceparent", "ff"+sampled[2:]), false, false},
		{"no trace", of("traceparent", strings.Replace(sampled, theTrace, strings.Repeat("0", 32), 1)), false, false},
		{"no span", of("traceparent", strings.Replace(sampled, theSpan, strings.Repeat("0", 16), 1)), false, false},
		{"capital letters", of("traceparent", strings.ToUpper(sampled)), false, false},
		{"no digits", of("traceparent", strings.Replace(sampled, "af", "zz", 1)), false, false},
		{"bytes", of("traceparent", strings.Repeat("\xff", 55)), false, false},
		{"long", of("traceparent", strings.Repeat("0", 8<<10)), false, false},
	} {
		parent, _ := parentOf(tt.header)
		if parent.IsValid() != tt.valid || parent.IsSampled() != tt.sampled {
			t.Errorf("%s: valid %v, sampled %v; want %v, %v", tt.name, parent.IsValid(), parent.IsSampled(), tt.valid,
				tt.sampled)
		}
		if tt.valid && (parent.TraceID().String() != theTrace || parent.SpanID().String() != theSpan || !parent.IsRemote()) {
			t.Errorf("%s: read as %+v", tt.name, parent)
		}
	}
}

// TestTraceStateIsBounded: a trace state is passed on with its traceparent, up to the size that its standard requires.
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
	f.Add(left, "")
	f.Fuzz(func(t *testing.T, parent, state string) {
		c, s := parentOf(message.Header{"traceparent": {parent}, "tracestate": {state}})
		if c.IsValid() && !strings.Contains(parent, c.TraceID().String()+"-"+c.SpanID().String()) {
			t.Errorf("%q is read as %+v", parent, c)
		}
		if len(s) > maxState {
			t.Errorf("a trace state of %d bytes", len(s))
		}
	})
}
