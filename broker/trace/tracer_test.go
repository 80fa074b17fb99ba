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

	"delaybroker/broker/message"
)

// TestSpanSaysAll: a span has the parent of the message, its times, and the events on its way.
func TestSpanSaysAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &collector{}
		tr := newTracer(t, c)
		e := ending("Traceparent", sampled, "Tracestate", "vendor=1")
		began := e.Accepted
		e.Due, e.At, e.Late = began.Add(2*time.Second), began.Add(9*time.Second), 7*time.Second
		e.Hops, e.Lane, e.Stored = 3, "DELAY_RETRY_5s", began.Add(4*time.Second)
		e.Refused, e.Reason, e.First, e.Last = 2, "it is \xff full", began.Add(2*time.Second), began.Add(4*time.Second)
		stop := run(tr)
		tr.Ended(e)
		stop()
		if len(c.spans) != 1 {
			t.Fatalf("%d spans, want one", len(c.spans))
		}
		s := c.spans[0]
		if s.Name() != "deliver" || s.SpanContext().TraceID().String() != theTrace ||
			s.Parent().SpanID().String() != theSpan || s.SpanContext().TraceState().String() != "vendor=1" {
			t.Errorf("%s of %v, parent %v", s.Name(), s.SpanContext(), s.Parent())
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
			t.Errorf("%d events, status %v", len(s.Events()), s.Status())
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

// TestDeadLetterIsAnError: the span of a dead letter is an error, with the letter's code and sentence.
func TestDeadLetterIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &collector{}
		tr := newTracer(t, c)
		stop := run(tr)
		e := ending("traceparent", sampled)
		e.Code, e.Reason, e.Due, e.Target = message.BadTime, "no time: \xff", time.Time{}, ""
		tr.Ended(e)
		stop()
		s := c.spans[0]
		if want := (sdk.Status{Code: codes.Error, Description: "no time: \uFFFD"}); s.Status() != want {
			t.Errorf("status %+v, want %+v", s.Status(), want)
		}
		if !slices.Contains(s.Attributes(), attribute.String("error.type", "bad_time")) || len(s.Events()) != 0 {
			t.Errorf("attributes %v, events %v", s.Attributes(), s.Events())
		}
	})
}

// TestSampling: a message whose producer does not sample has no span and costs nothing, unless the sampler decides
// otherwise. For a message without a traceparent, the sampler decides.
func TestSampling(t *testing.T) {
	for _, tt := range []struct {
		sampler           string
		sampled, left, no int
	}{
		{"", 1, 0, 1},
		{"parentbased_always_on", 1, 0, 1},
		{"parentbased_always_off", 1, 0, 0},
		{"always_on", 1, 1, 1},
		{"always_off", 0, 0, 0},
	} {
		for header, want := range map[string]int{sampled: tt.sampled, left: tt.left, "": tt.no, "nonsense": tt.no} {
			t.Setenv(envSampler, tt.sampler) // the SDK reads it itself
			c := &collector{}
			tr := newTracer(t, c, envSampler+"="+tt.sampler)
			stop := run(tr)
			tr.Ended(ending("traceparent", header))
			stop()
			if len(c.spans) != want {
				t.Errorf("sampler %q, traceparent %q: %d spans, want %d", tt.sampler, header, len(c.spans), want)
			}
			wantCounts(t, tr, uint64(want), 0)
		}
	}
	tr := newTracer(t, &collector{})
	e := ending("Traceparent", left, "X-Other", "1")
	if n := testing.AllocsPerRun(1000, func() { tr.Ended(e) }); n != 0 {
		t.Errorf("a message that is not sampled costs %v allocations, want none", n)
	}
	if tr.queue.waiting != 0 {
		t.Errorf("%d messages that are not sampled take room", tr.queue.waiting)
	}
}

// TestCollectorAway: while the collector accepts nothing, Ended returns immediately. Spans without room are dropped,
// counted, and logged once a minute. When the collector is back, the next spans are sent.
func TestCollectorAway(t *testing.T) {
	for name, away := range map[string]*collector{
		"silent": {wait: make(chan struct{})},
		"down":   {err: errors.New("connection refused")},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if away.wait != nil {
					away.wait = make(chan struct{}) // of this bubble
				}
				var log bytes.Buffer
				tr := newLoggingTracer(t, away, slog.New(slog.NewTextHandler(&log, nil)), "OTEL_BSP_MAX_QUEUE_SIZE=100",
					"OTEL_BSP_MAX_EXPORT_BATCH_SIZE=10", "OTEL_BSP_EXPORT_TIMEOUT=5000")
				stop := run(tr)
				began := time.Now()
				for range 1000 {
					tr.Ended(ending("traceparent", sampled))
				}
				if took := time.Since(began); took != 0 {
					t.Errorf("it took %s, want no time at all", took)
				}
				time.Sleep(55 * time.Second)
				synctest.Wait()
				wantCounts(t, tr, 0, 1000)
				if said := strings.Count(log.String(), "the collector accepts no spans"); said != 1 {
					t.Errorf("logged %d times, want once:\n%s", said, log.String())
				}
				away.mu.Lock()
				away.err = nil
				away.mu.Unlock()
				if away.wait != nil {
					close(away.wait)
				}
				tr.Ended(ending("traceparent", sampled))
				time.Sleep(defaultDelay)
				synctest.Wait()
				wantCounts(t, tr, 1, 1000)
				stop()
			})
		})
	}
}

// TestNoMoreThanItsRoomWaits: the queue is bounded, and the room of sent spans is free again.
func TestNoMoreThanItsRoomWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &collector{wait: make(chan struct{})}
		tr := newTracer(t, c, "OTEL_BSP_MAX_QUEUE_SIZE=100", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE=10")
		stop := run(tr)
		add := func(n int) {
			for range n {
				tr.Ended(ending("traceparent", sampled))
			}
			time.Sleep(2 * time.Second)
			synctest.Wait()
		}
		add(60)
		add(60) // spans that are being sent take room too
		wantCounts(t, tr, 0, 20)
		close(c.wait)
		add(0)
		wantCounts(t, tr, 100, 20)
		add(100)
		wantCounts(t, tr, 200, 20)
		stop()
	})
}

// TestStopWaitsASecond: a stop waits a second for a silent collector, and counts the spans that it did not accept. A
// collector that answers gets all spans.
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
				tr.Ended(ending("traceparent", sampled))
			}
			began := time.Now()
			stop()
			if took := time.Since(began); silent && took != flushTimeout || !silent && took != 0 {
				t.Errorf("silent %v: the stop took %s", silent, took)
			}
			if silent {
				wantCounts(t, tr, 0, 2000)
			} else {
				wantCounts(t, tr, 2000, 0)
			}
		})
	}
}

// BenchmarkEnded measures a delivery's cost: for a message that is not sampled, and for one with a span. BenchmarkSpan
// has the cost of the other goroutine, which makes the span.
func BenchmarkEnded(b *testing.B) {
	for name, header := range map[string]string{"sampled": sampled, "not": left} {
		b.Run(name, func(b *testing.B) {
			tr := newTracer(b, &collector{})
			e := ending("Traceparent", header)
			b.ReportAllocs()
			for b.Loop() {
				tr.Ended(e)
				if len(tr.queue.queued) == tr.queue.room {
					tr.queue.queued, tr.queue.waiting = tr.queue.queued[:0], 0
				}
			}
		})
	}
}

// BenchmarkSpan measures Run's work for a span, without encoding and sending.
func BenchmarkSpan(b *testing.B) {
	tr := newTracer(b, &collector{})
	e := ending("Traceparent", sampled)
	parent, _ := parentOf(e.Header)
	b.ReportAllocs()
	for b.Loop() {
		tr.span(&ended{Ended: e, parent: parent})
		tr.spans.take()
	}
}
