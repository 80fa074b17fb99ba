package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	collect "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/nats-io/nats.go"
)

// TestServeSendsSpans runs the whole program with the standard variables and a collector. A stop sends the remaining
// spans.
func TestServeSendsSpans(t *testing.T) {
	if inOwnProcess(t) {
		return
	}
	embeddedEnv(t)
	var mu sync.Mutex
	var got []*otlp.Span
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var export collect.ExportTraceServiceRequest
		raw, err := io.ReadAll(r.Body)
		if err == nil {
			err = proto.Unmarshal(raw, &export)
		}
		if err != nil {
			t.Errorf("read the request: %v", err)
		}
		mu.Lock()
		defer mu.Unlock()
		for _, of := range export.ResourceSpans {
			for _, scope := range of.ScopeSpans {
				got = append(got, scope.Spans...)
			}
		}
	}))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "3600000") // so that only the stop sends spans
	p := startReady(t)
	ready := p.ready
	nc, js := connect(t, ready["server"].(string))
	sub := subscribe(t, nc, "x")
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	m := nats.NewMsg("delay.1s.x")
	m.Header.Set("traceparent", parent)
	if _, err := js.PublishMsg(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if arrived := wantMessage(t, sub, ""); arrived.Header.Get("traceparent") != parent {
		t.Errorf("arrived with %v", arrived.Header)
	}
	wantBody(t, ready["http"], "/metrics", "\ndelaybroker_trace_spans_total 0\n", "\ndelaybroker_trace_dropped_total 0\n")
	p.stop(t)
	mu.Lock()
	defer mu.Unlock()
	if len(got) != 1 || got[0].Name != "deliver" || got[0].EndTimeUnixNano-got[0].StartTimeUnixNano < 1e9 {
		t.Errorf("spans %v, want one of a second or more", got)
	}
}

// TestServeWithoutSpans: an unusable collector causes a warning and has no other effect. Without a collector there are
// no metrics of spans.
func TestServeWithoutSpans(t *testing.T) {
	embeddedEnv(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4317")
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	p := start(t)
	line := p.log.await(t, "the broker runs without tracing")
	if err, _ := line["err"].(string); !strings.Contains(err, "OTEL_EXPORTER_OTLP_PROTOCOL") {
		t.Errorf("the log has %v", line)
	}
	ready := p.log.await(t, "ready")
	if strings.Contains(bodyOf(t, ready["http"], "/metrics"), "delaybroker_trace") {
		t.Error("there are metrics of spans")
	}
	p.stop(t)
}
