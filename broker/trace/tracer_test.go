package trace

import (
	"bytes"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"delaybroker/broker/config"
	"delaybroker/broker/message"
)

// TestSpanIsComplete: a span has the message's parent, trace state, times, attributes and events.
func TestSpanIsComplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &collector{}
		tr := newTracer(t, c)
		e := endedMessage("Traceparent", sampled, "Tracestate", "vendor=1")
		began := e.Accepted
		e.Due, e.At, e.Lateness = began.Add(2*time.Second), began.Add(9*time.Second), 7*time.Second
		e.Hops, e.Lane, e.Stored = 3, "DELAY_RETRY_5s", began.Add(4*time.Second)
		e.Refusals, e.Reason = 2, "it is \xff full"
		e.FirstRefusal, e.LastRefusal = began.Add(2*time.Second), began.Add(4*time.Second)
		stop := run(tr)
		tr.Ended(e)
		stop()
		if len(c.spans) != 1 {
			t.Fatalf("%d spans, want one", len(c.spans))
		}
		s := c.spans[0]
		if s.Name() != "deliver" || s.SpanContext().TraceID().String() != traceID ||
			s.Parent().SpanID().String() != spanID || s.SpanContext().TraceState().String() != "vendor=1" {
			t.Errorf("span %s of %v, parent %v; want deliver, with the producer's trace, span and state", s.Name(),
				s.SpanContext(), s.Parent())
		}
		if !s.StartTime().Equal(began) || !s.EndTime().Equal(e.At) {
			t.Errorf("from %s to %s, want %s to %s", s.StartTime(), s.EndTime(), began, e.At)
		}
		wantAttributes(t, s.Attributes(),
			"messaging.system=nats messaging.operation.name=deliver messaging.operation.type=send"+
				" messaging.message.id=DELAY_1s-1-5 messaging.message.body.size=3 delaybroker.hops=3"+
				" delaybroker.attempts=3 delaybroker.lane=DELAY_RETRY_5s messaging.destination.name=orders.a"+
				" delaybroker.delay=2 delaybroker.late=7")
		for i, want := range []struct {
			name  string
			after time.Duration
			has   string
		}{
			{"due", 2 * time.Second, ""},
			{"refused", 2 * time.Second, "delaybroker.attempt=1"},
			{"refused", 4 * time.Second, "delaybroker.attempt=2 delaybroker.reason=it is \uFFFD full"},
			{"hop", 4 * time.Second, "delaybroker.hops=3 delaybroker.lane=DELAY_RETRY_5s"},
		} {
			if got := s.Events()[i]; got.Name != want.name || !got.Time.Equal(began.Add(want.after)) {
				t.Errorf("event %d is %s at %s, want %s after %s", i, got.Name, got.Time.Sub(began), want.name, want.after)
			}
			wantAttributes(t, s.Events()[i].Attributes, want.has)
		}
		if len(s.Events()) != 4 || s.Status().Code != codes.Unset {
			t.Errorf("%d events, status %v; want 4, and no status", len(s.Events()), s.Status())
		}
	})
}

func wantAttributes(t *testing.T, got []attribute.KeyValue, want string) {
	t.Helper()
	var all []string
	for _, a := range got {
		all = append(all, string(a.Key)+"="+a.Value.String())
	}
	if got := strings.Join(all, " "); got != want {
		t.Errorf("attributes:\n got %s\nwant %s", got, want)
	}
}

// spanOf returns the span of one ended message.
func spanOf(t *testing.T, e config.Ended) sdk.ReadOnlySpan {
	t.Helper()
	c := &collector{}
	tr := newTracer(t, c)
	stop := run(tr)
	tr.Ended(e)
	stop()
	return c.spans[0]
}

// TestDeadLetterIsAnError: the status of a dead letter's span is an error, with the letter's code and sentence.
func TestDeadLetterIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := endedMessage("traceparent", sampled)
		e.Code, e.Reason, e.Due, e.Target = message.BadTime, "no time: \xff", time.Time{}, ""
		s := spanOf(t, e)
		if want := (sdk.Status{Code: codes.Error, Description: "no time: \uFFFD"}); s.Status() != want {
			t.Errorf("status %+v, want %+v", s.Status(), want)
		}
		if !slices.Contains(s.Attributes(), attribute.String("error.type", "bad_time")) || len(s.Events()) != 0 {
			t.Errorf("attributes %v, events %v; want error.type bad_time, and no event", s.Attributes(), s.Events())
		}
	})
}

// TestDeadLetterAfterRefusal: the event of the last refusal does not have the reason of the dead letter, which may be
// another reason, such as the expiry.
func TestDeadLetterAfterRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := endedMessage("traceparent", sampled)
		e.Code, e.Reason, e.Due = message.Expired, "the rate of its target or key had no free turn", time.Time{}
		e.Refusals, e.LastRefusal = 1, e.Accepted
		if events := spanOf(t, e).Events(); len(events) != 1 {
			t.Errorf("events %v, want only the refusal", events)
		} else {
			wantAttributes(t, events[0].Attributes, "delaybroker.attempt=1")
		}
	})
}

// TestSampling: with a sampler that follows the producer's decision, an unsampled message has no span and costs no
// allocation. Any other sampler decides about all messages. The sampler decides about a message without a valid
// traceparent.
func TestSampling(t *testing.T) {
	for _, tt := range []struct {
		sampler                        string
		sampled, unsampled, noDecision int // number of spans
	}{
		{"", 1, 0, 1},
		{"parentbased_always_on", 1, 0, 1},
		{"parentbased_always_off", 1, 0, 0},
		{"always_on", 1, 1, 1},
		{"always_off", 0, 0, 0},
	} {
		for header, want := range map[string]int{
			sampled: tt.sampled, unsampled: tt.unsampled, "": tt.noDecision, "nonsense": tt.noDecision,
		} {
			t.Setenv(envSampler, tt.sampler) // for the SDK
			c := &collector{}
			tr := newTracer(t, c, envSampler+"="+tt.sampler)
			stop := run(tr)
			tr.Ended(endedMessage("traceparent", header))
			stop()
			if len(c.spans) != want {
				t.Errorf("sampler %q, traceparent %q: %d spans, want %d", tt.sampler, header, len(c.spans), want)
			}
			wantCounts(t, tr, uint64(want), 0)
		}
	}
	tr := newTracer(t, &collector{})
	e := endedMessage("Traceparent", unsampled, "X-Other", "1")
	if n := testing.AllocsPerRun(1000, func() { tr.Ended(e) }); n != 0 {
		t.Errorf("an unsampled message costs %v allocations, want none", n)
	}
	if waiting, _ := tr.queue.Waiting(); waiting != 0 {
		t.Errorf("%d unsampled messages take room, want none", waiting)
	}
}

// TestCollectorUnavailable: while the collector accepts no spans, Ended returns immediately. The tracer drops and
// counts the messages without room and the spans that it cannot send, and logs once a minute. When the collector
// accepts spans again, the tracer sends the next spans.
func TestCollectorUnavailable(t *testing.T) {
	for name, c := range map[string]*collector{
		"silent": {wait: make(chan struct{})},
		"down":   {err: errors.New("connection refused")},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if c.wait != nil {
					c.wait = make(chan struct{}) // a channel of this bubble
				}
				var log bytes.Buffer
				tr := newLoggingTracer(t, c, slog.New(slog.NewTextHandler(&log, nil)), "OTEL_BSP_MAX_QUEUE_SIZE=100",
					"OTEL_BSP_MAX_EXPORT_BATCH_SIZE=10", "OTEL_BSP_EXPORT_TIMEOUT=5000")
				stop := run(tr)
				began := time.Now()
				for range 1000 {
					tr.Ended(endedMessage("traceparent", sampled))
				}
				if took := time.Since(began); took != 0 {
					t.Errorf("the calls of Ended took %s, want no time", took)
				}
				time.Sleep(55 * time.Second)
				synctest.Wait()
				wantCounts(t, tr, 0, 1000)
				if lines := strings.Count(log.String(), "cannot send spans"); lines != 1 {
					t.Errorf("logged %d times, want once:\n%s", lines, log.String())
				}
				c.mu.Lock()
				c.err = nil
				c.mu.Unlock()
				if c.wait != nil {
					close(c.wait)
				}
				tr.Ended(endedMessage("traceparent", sampled))
				time.Sleep(defaultDelay)
				synctest.Wait()
				wantCounts(t, tr, 1, 1000)
				stop()
			})
		})
	}
}

// TestQueueIsBounded: the number of waiting messages is bounded. After a span is sent, there is room for another
// message.
func TestQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &collector{wait: make(chan struct{})}
		tr := newTracer(t, c, "OTEL_BSP_MAX_QUEUE_SIZE=100", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE=10")
		stop := run(tr)
		add := func(n int) {
			for range n {
				tr.Ended(endedMessage("traceparent", sampled))
			}
			time.Sleep(2 * time.Second)
			synctest.Wait()
		}
		add(60)
		add(60) // messages whose spans are being sent take room, too
		wantCounts(t, tr, 0, 20)
		close(c.wait)
		add(0)
		wantCounts(t, tr, 100, 20)
		add(100)
		wantCounts(t, tr, 200, 20)
		stop()
	})
}

// TestStopWaitsASecond: a stop waits a second for a silent collector, and then counts the spans as dropped. A collector
// that answers gets all spans.
func TestStopWaitsASecond(t *testing.T) {
	for _, silent := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			c := &collector{}
			if silent {
				c.wait = make(chan struct{})
			}
			tr := newTracer(t, c)
			stop := run(tr)
			for range 2000 {
				tr.Ended(endedMessage("traceparent", sampled))
			}
			began := time.Now()
			stop()
			if took := time.Since(began); silent && took != flushTimeout || !silent && took != 0 {
				t.Errorf("silent %v: the stop took %s, want %s for a silent collector, and no time otherwise", silent, took,
					flushTimeout)
			}
			if silent {
				wantCounts(t, tr, 0, 2000)
			} else {
				wantCounts(t, tr, 2000, 0)
			}
		})
	}
}

// BenchmarkEnded measures the cost for the goroutine that delivers: for a sampled and for an unsampled message.
// BenchmarkSpan measures the cost for the other goroutine, which makes the spans.
func BenchmarkEnded(b *testing.B) {
	for name, header := range map[string]string{"sampled": sampled, "unsampled": unsampled} {
		b.Run(name, func(b *testing.B) {
			tr := newTracer(b, &collector{})
			e := endedMessage("Traceparent", header)
			b.ReportAllocs()
			stop := run(tr)
			for b.Loop() {
				tr.Ended(e)
			}
			stop()
		})
	}
}

// BenchmarkSpan measures Run's work for a span, without encoding and sending.
func BenchmarkSpan(b *testing.B) {
	tr := newTracer(b, &collector{})
	e := endedMessage("Traceparent", sampled)
	parent, _ := parentOf(e.Header)
	b.ReportAllocs()
	for b.Loop() {
		tr.span(&pendingSpan{Ended: e, parent: parent})
		tr.spans.spans = nil
	}
}
