package operate

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"

	"delaybroker/broker"
	"delaybroker/broker/trace"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// A collector receives spans of OpenTelemetry.
type collector struct {
	silent bool // never answers

	mu  sync.Mutex // guards all
	all []sdk.ReadOnlySpan
}

func (s *collector) ExportSpans(ctx context.Context, some []sdk.ReadOnlySpan) error {
	if s.silent {
		<-ctx.Done()
		return ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, some...)
	return nil
}

func (s *collector) Shutdown(context.Context) error { return nil }

// startTracing sends the spans of a broker to a collector until the test ends, or stop is called.
func startTracing(t *testing.T, spans *collector) (tr *trace.Tracer, stop func()) {
	t.Helper()
	tr, err := trace.New(trace.Config{
		Environment: func(string) string { return "" }, Exporter: spans, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	natstest.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { tr.Run(ctx) })
	stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	t.Cleanup(stop)
	return tr, stop
}

// parent returns the traceparent of a producer's span, and its trace.
func parent(n int, flags string) (header, traceID string) {
	traceID = fmt.Sprintf("%032x", 0xabc00+n)
	return fmt.Sprintf("00-%s-%016x-%s", traceID, 0xdef00+n, flags), traceID
}

// formatSpan returns a span as text, with times since the beginning of the test.
func formatSpan(s sdk.ReadOnlySpan, began time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s-%s", s.StartTime().Sub(began), s.EndTime().Sub(began))
	for _, a := range s.Attributes() {
		switch a.Key {
		case "messaging.destination.name", "error.type":
			fmt.Fprintf(&b, " %s", a.Value.String())
		case "delaybroker.hops", "delaybroker.attempts", "delaybroker.late":
			fmt.Fprintf(&b, " %s=%s", strings.TrimPrefix(string(a.Key), "delaybroker."), a.Value.String())
		}
	}
	for _, e := range s.Events() {
		fmt.Fprintf(&b, ", %s at %s", e.Name, e.Time.Sub(began))
	}
	return b.String()
}

// TestSpanOfEachMessage: a span lasts from the acceptance of a message to its delivery or dead letter, exact to the
// nanosecond, and has the hops and refusals. It belongs to the trace of the producer, whose headers reach the target
// unchanged. A message of an unsampled trace gets no span. The broker passes on an invalid traceparent header like any
// other header.
func TestSpanOfEachMessage(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		spans := &collector{}
		tr, stop := startTracing(t, spans)
		harness.StartBroker(t, s, broker.Config{
			Ladder: harness.Ladder(t, "1s 5s 10s"), RetryLadder: harness.Ladder(t, "2s"), Attempts: 2, Ended: tr.Ended,
		})
		c := harness.NewClient(t, s)
		c.Target("ORDERS", "orders.>")
		began := time.Now()
		want := make(map[string]string) // by trace
		publish := func(subject, flags, expect string) {
			header, id := parent(len(want), flags)
			c.Publish(subject, "x", "traceparent", header, "tracestate", "vendor=1")
			want[id] = expect
		}
		publish("delay.1s.orders.plain", "01", "0s-1s hops=0 attempts=1 orders.plain late=0, due at 1s")
		publish("delayin.20s.orders.far", "01",
			"0s-20s hops=2 attempts=1 orders.far late=0, hop at 9.96s, due at 20s")
		publish("delay.1s.late.x", "01",
			"0s-3s hops=1 attempts=2 late.x late=2, due at 1s, refused at 1s, hop at 1s")
		publish("delay.1s.nobody.x", "01",
			"0s-3s hops=1 attempts=2 nobody.x late=2 undelivered, due at 1s, refused at 1s, hop at 1s, refused at 3s")
		publish("delayin.soon.orders.bad", "01", "0s-0s hops=0 attempts=0 orders.bad bad_time")
		publish("delay.1s.orders.quiet", "00", "")
		hostile := strings.Repeat("\xff", 55)
		c.Publish("delay.1s.orders.hostile", "x", "Traceparent", hostile)
		c.Publish("delay.1s.orders.none", "x")
		time.Sleep(2 * time.Second)
		c.Target("LATE", "late.>")
		time.Sleep(20 * time.Second)
		stop()
		wantSpans(t, spans.all, began, want, 2)
		for _, a := range c.Arrivals("ORDERS") {
			got := a.Header["traceparent"]
			if a.Subject == "orders.hostile" {
				got = a.Header["Traceparent"]
			} else if a.Subject == "orders.none" {
				continue
			}
			if len(got) != 1 || got[0] != hostile && !strings.HasPrefix(got[0], "00-") {
				t.Errorf("%s arrived with %q", a.Subject, a.Header)
			}
		}
	})
}

// wantSpans compares the spans with the expected span of each trace. An empty string means no span. It counts spans
// without a parent.
func wantSpans(t *testing.T, all []sdk.ReadOnlySpan, began time.Time, want map[string]string, wantRoots int) {
	t.Helper()
	roots := 0
	for _, span := range all {
		id := span.SpanContext().TraceID().String()
		expect, ours := want[id]
		switch {
		case !ours && !span.Parent().IsValid():
			roots++
		case !ours:
			t.Errorf("got a span of the unknown trace %s", id)
		case formatSpan(span, began) != expect:
			t.Errorf("trace %s:\n got %s\nwant %s", id, formatSpan(span, began), expect)
		}
		delete(want, id)
	}
	for id, expect := range want {
		if expect != "" {
			t.Errorf("trace %s has no span, want %s", id, expect)
		}
	}
	if roots != wantRoots {
		t.Errorf("%d spans without a parent, want %d", roots, wantRoots)
	}
}

// TestSpanAcrossInstances: a message that one instance moves, and another one delivers, has one span, which begins at
// the acceptance. The instance that delivers the message sends the span.
func TestSpanAcrossInstances(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		first, last := &collector{}, &collector{}
		one, stopOne := startTracing(t, first)
		two, stopTwo := startTracing(t, last)
		cfg := broker.Config{Ladder: harness.Ladder(t, "5s 10s"), Leaser: harness.Together, Ended: one.Ended}
		active, c := harness.Start(t, s, cfg)
		cfg.Ended = two.Ended
		harness.StartBroker(t, s, cfg)
		c.Target("ORDERS", "orders.>")
		began := time.Now()
		header, id := parent(1, "01")
		c.Publish("delayin.15s.orders.x", "x", "traceparent", header)
		time.Sleep(time.Second)
		active.Stop()
		time.Sleep(14 * time.Second)
		synctest.Wait()
		stopOne()
		stopTwo()
		if len(first.all) != 0 || len(last.all) != 1 {
			t.Fatalf("%d spans of the first, %d of the second; want none, and one", len(first.all), len(last.all))
		}
		const want = "0s-15s hops=1 attempts=1 orders.x late=0, hop at 0s, due at 15s"
		if got := formatSpan(last.all[0], began); got != want || last.all[0].SpanContext().TraceID().String() != id {
			t.Errorf("got %s\nwant %s", got, want)
		}
	})
}

// TestSilentCollectorDelaysNothing: without answers of the collector, each delivery is exactly on time, and the broker
// counts the dropped spans.
func TestSilentCollectorDelaysNothing(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		tr, stop := startTracing(t, &collector{silent: true})
		i, c := harness.Start(t, s, broker.Config{Ladder: harness.Ladder(t, "1s 5s"), Ended: tr.Ended})
		c.Target("ORDERS", "orders.>")
		const many = 100
		header, _ := parent(1, "01")
		for range many {
			c.Publish("delay.1s.orders.x", "x", "traceparent", header)
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(2 * time.Second)
		harness.CheckOnTime(t, c.Arrivals("ORDERS"), many)
		i.Stop()
		stop()
		if sent, dropped := tr.Counts(); sent != 0 || dropped != many {
			t.Errorf("%d spans were sent and %d dropped, want none and %d", sent, dropped, many)
		}
	})
}
