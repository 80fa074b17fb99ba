package trace

import (
	"compress/gzip"
	"encoding/hex"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"

	collect "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// receiver is a collector over HTTP.
type receiver struct {
	*httptest.Server
	mu       sync.Mutex // guards the fields below
	requests []*http.Request
	received []*otlp.ResourceSpans
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var body io.Reader = req.Body
		if req.Header.Get("Content-Encoding") == "gzip" {
			var err error
			if body, err = gzip.NewReader(req.Body); err != nil {
				t.Error(err)
			}
		}
		raw, err := io.ReadAll(body)
		var export collect.ExportTraceServiceRequest
		if err == nil {
			err = proto.Unmarshal(raw, &export)
		}
		if err != nil {
			t.Errorf("cannot read a request: %v", err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.requests, r.received = append(r.requests, req), append(r.received, export.ResourceSpans...)
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(r.Close)
	return r
}

// TestCollectorGetsSpans: the tracer sends spans as protobuf over HTTP, to the address and with the headers in the
// standard environment variables.
func TestCollectorGetsSpans(t *testing.T) {
	r := newReceiver(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", r.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key=s3cret")
	t.Setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
	t.Setenv("OTEL_SERVICE_NAME", "orders-delay")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
	if enabled, err := Enabled(os.Getenv); !enabled || err != nil {
		t.Fatalf("enabled %v, %v; want true and no error", enabled, err)
	}
	tr, err := New(Config{Version: "v1.2.3", Environment: os.Getenv, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	stop := run(tr)
	e := endedMessage("Traceparent", sampled)
	e.Target, e.Reason = "orders.\xfe", "\xff" // invalid UTF-8 must not spoil the batch
	e.Refusals, e.LastRefusal = 1, e.Due
	tr.Ended(e)
	stop()
	wantCounts(t, tr, 1, 0)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.requests) != 1 || r.requests[0].URL.Path != "/v1/traces" || r.requests[0].Header.Get("api-key") != "s3cret" {
		t.Fatalf("got the requests %v, want one on /v1/traces with the key", r.requests)
	}
	resource := make(map[string]string)
	for _, a := range r.received[0].Resource.Attributes {
		resource[a.Key] = a.Value.GetStringValue()
	}
	for key, want := range map[string]string{
		"service.name": "orders-delay", "service.version": "v1.2.3", "deployment.environment.name": "test",
	} {
		if resource[key] != want {
			t.Errorf("resource: %s is %q, want %q", key, resource[key], want)
		}
	}
	s := r.received[0].ScopeSpans[0].Spans[0]
	if string(s.TraceId) != unhex(t, traceID) || string(s.ParentSpanId) != unhex(t, spanID) || len(s.SpanId) != 8 {
		t.Errorf("trace %x, parent %x, span %x; want %s, %s and 8 bytes", s.TraceId, s.ParentSpanId, s.SpanId, traceID,
			spanID)
	}
	if int64(s.StartTimeUnixNano) != e.Accepted.UnixNano() || int64(s.EndTimeUnixNano) != e.At.UnixNano() {
		t.Errorf("from %d to %d, want %d to %d", s.StartTimeUnixNano, s.EndTimeUnixNano, e.Accepted.UnixNano(),
			e.At.UnixNano())
	}
	if s.Kind != otlp.Span_SPAN_KIND_CLIENT {
		t.Errorf("kind %s, want client", s.Kind)
	}
}

// TestRefusedConnection: if the endpoint refuses the connection, the tracer drops the spans immediately, and its stop
// does not wait.
func TestRefusedConnection(t *testing.T) {
	r := newReceiver(t)
	r.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", r.URL)
	tr, err := New(Config{Environment: os.Getenv, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	stop := run(tr)
	for range 1000 {
		tr.Ended(endedMessage("Traceparent", sampled))
	}
	stop()
	wantCounts(t, tr, 0, 1000)
}

// TestDefaultServiceName: without OTEL_SERVICE_NAME, service.name is delaybroker.
func TestDefaultServiceName(t *testing.T) {
	t.Setenv("OTEL_SERVICE_NAME", "")
	r, err := resourceOf("v1")
	if err != nil {
		t.Fatal(err)
	}
	if name, _ := r.Set().Value("service.name"); name.AsString() != "delaybroker" {
		t.Errorf("service.name is %q, want delaybroker", name.AsString())
	}
}

func unhex(t *testing.T, s string) string {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
