package trace

import (
	"strings"
	"testing"
)

// environment returns an Environment with variables such as "NAME=value".
func environment(variables ...string) Environment {
	return func(name string) string {
		for _, v := range variables {
			if value, ok := strings.CutPrefix(v, name+"="); ok {
				return value
			}
		}
		return ""
	}
}

// TestEnabled: traces are enabled only with an endpoint. An unsupported feature is an error.
func TestEnabled(t *testing.T) {
	t.Parallel()
	const endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:4318"
	for _, tt := range []struct {
		env       []string
		want      bool
		errorText string // a part of the error; empty for no error
	}{
		{nil, false, ""},
		{[]string{"OTEL_EXPORTER_OTLP_ENDPOINT="}, false, ""},
		{[]string{"OTEL_SERVICE_NAME=x", "OTEL_TRACES_SAMPLER=always_on"}, false, ""},
		{[]string{endpoint}, true, ""},
		{[]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=https://collector/v1/traces"}, true, ""},
		{[]string{endpoint, "OTEL_SDK_DISABLED=true"}, false, ""},
		{[]string{endpoint, "OTEL_TRACES_EXPORTER=none"}, false, ""},
		{[]string{endpoint, "OTEL_TRACES_EXPORTER=otlp"}, true, ""},
		{[]string{endpoint, "OTEL_TRACES_EXPORTER=zipkin"}, false, "OTEL_TRACES_EXPORTER"},
		{[]string{endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf"}, true, ""},
		{[]string{endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"}, false, "4318"},
		{[]string{endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/protobuf"},
			true, ""},
		{[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=collector:4318"}, false, "URL"},
		{[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://me:secret@"}, false, "URL"},
		{[]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=collector:4318"}, false, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is"},
		{[]string{endpoint, "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=grpc"}, false, "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL="},
	} {
		got, err := Enabled(environment(tt.env...))
		if got != tt.want || (err != nil) != (tt.errorText != "") {
			t.Errorf("%v: got %v, %v; want %v", tt.env, got, err, tt.want)
		}
		if err != nil && (!strings.Contains(err.Error(), tt.errorText) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%v: the error is %q, want %s in it", tt.env, err, tt.errorText)
		}
	}
}

// TestBounds: with any environment, the queue is bounded, and a batch fits into the queue.
func TestBounds(t *testing.T) {
	for _, tt := range []struct {
		env         []string
		room, batch int
	}{
		{nil, defaultQueue, defaultBatch},
		{[]string{"OTEL_BSP_MAX_QUEUE_SIZE=100"}, 100, 100},
		{[]string{"OTEL_BSP_MAX_QUEUE_SIZE=0", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE=-1"}, defaultQueue, defaultBatch},
		{[]string{"OTEL_BSP_MAX_QUEUE_SIZE=99999999999", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE=many"}, maxQueue, defaultBatch},
	} {
		if l := environment(tt.env...).limits(); l.Room != tt.room || l.Full != tt.batch {
			t.Errorf("%v: room %d, batch %d; want %d, %d", tt.env, l.Room, l.Full, tt.room, tt.batch)
		}
	}
}
