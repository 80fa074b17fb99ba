package engine

import (
	"testing"
	"time"

	"delaybroker/broker/message"
	"delaybroker/broker/streams"
)

// TestSettlementsWait: settlements wait while many messages have no answer, or a timer must be read. They do not wait
// after maxSettlementWait, with too many settlements, or when the lane ends.
func TestSettlementsWait(t *testing.T) {
	now := time.Now()
	for name, tt := range map[string]struct {
		change func(w *worker)
		after  time.Duration
		want   bool
	}{
		"idle":                  {func(*worker) {}, 0, false},
		"a few answers missing": {func(w *worker) { w.flights.unanswered = maxAnswers }, 0, false},
		"busy":                  {func(w *worker) { w.flights.unanswered = maxAnswers + 1 }, 0, true},
		"busy with settlements": {func(w *worker) {
			w.flights.unanswered = 90
			for range 30 {
				w.timers.queue.begun[new(settlement)] = nil
			}
		}, 0, false},
		"reads from replicas":   {func(w *worker) { w.timers.copyQueue = make([]*flight, 1) }, 0, true},
		"reads from the leader": {func(w *worker) { w.timers.reads.add("x", new(flight), false) }, 0, true},
		"for long":              {func(w *worker) { w.flights.unanswered = 1000 }, maxSettlementWait + 1, false},
		"many": {func(w *worker) {
			w.flights.unanswered, w.timers.count = 1000, maxSettlements+1
		}, 0, false},
		"the lane ends":          {func(w *worker) { w.flights.unanswered = 1000; w.stopped.Store(true) }, 0, false},
		"no room for other work": {func(w *worker) { w.flights.unanswered, w.flights.count = 1000, 1<<20 }, 0, false},
	} {
		w := newTestWorker(t, streams.Spec{Kind: streams.Timers, Stream: "DELAY_TIMERS"}, now)
		f := entryRead(w, 7, now, message.Header{"Delay-Cancel": {"1"}})
		w.remove(f)
		w.timers.queue.order[0].ready[0].settledAt = now
		tt.change(w)
		if got := w.settlementsWait(now.Add(tt.after)); got != tt.want {
			t.Errorf("%s: settlements wait: %t, want %t", name, got, tt.want)
		}
	}
}

// TestSettledTimerLeavesMemory: of a settled timer, only a settlement is in memory. Its message is committed only when
// its entries are removed.
func TestSettledTimerLeavesMemory(t *testing.T) {
	now := time.Now()
	w := newTestWorker(t, streams.Spec{Kind: streams.Timers, Stream: "DELAY_TIMERS"}, now)
	w.timers.lane.History = time.Hour
	f := entryRead(w, 7, now, message.Header{"Delay-Cancel": {"1"}})
	f.timer.PreviousRemoved() // so the removal sends no request
	f.timer.Size = 1 << 20
	w.load(f, loadShare)
	if w.flights.bytes < 1<<20 || w.timers.loadedBytes != 1<<20 {
		t.Fatalf("the body takes %d of %d bytes", w.timers.loadedBytes, w.flights.bytes)
	}
	w.remove(f)
	if w.flights.count != 0 || w.flights.bytes != 0 || w.timers.loadedBytes != 0 || w.timers.count != 1 {
		t.Errorf("settled: %d messages with %d bytes, %d of bodies, and %d settlements; want one of these",
			w.flights.count, w.flights.bytes, w.timers.loadedBytes, w.timers.count)
	}
	if w.reading.cursor.ArrivedThrough() != 0 {
		t.Error("the message is committed before the entries are removed")
	}
	s, _ := w.timers.queue.take(nil)
	settlementAnswered{s, s.timer.Request(0)(t.Context())}.handle(w, w.moment(now))
	if w.timers.count != 0 || w.reading.cursor.ArrivedThrough() != 7 {
		t.Errorf("removed: %d settlements, committed up to %d", w.timers.count, w.reading.cursor.ArrivedThrough())
	}
}
