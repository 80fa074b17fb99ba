package engine

import (
	"testing"
	"time"

	"delaybroker/broker/message"
	"delaybroker/broker/streams"
	"delaybroker/broker/timer/role"
)

// TestSettlementsWait: settlements wait while many due messages are on their way or must be read. They do not wait for
// long, nor if they are many, nor during a stop.
func TestSettlementsWait(t *testing.T) {
	now := time.Now()
	for name, tt := range map[string]struct {
		change func(w *worker)
		after  time.Duration
		want   bool
	}{
		"idle":                  {func(*worker) {}, 0, false},
		"a few answers away":    {func(w *worker) { w.flights.underway = maxAnswers }, 0, false},
		"busy":                  {func(w *worker) { w.flights.underway = maxAnswers + 1 }, 0, true},
		"busy with settlements": {func(w *worker) { w.flights.underway, w.timers.settlements.underway = 90, 30 }, 0, false},
		"bodies are to be read": {func(w *worker) { w.timers.uncopied = make([]*flight, 1) }, 0, true},
		"and from the leader":   {func(w *worker) { w.timers.unlooked = make([]*flight, 1) }, 0, true},
		"other lanes fire": {func(w *worker) {
			for i := range uint64(maxAnswers + 1) {
				w.timers.stream.Take(&role.Alarm{Generation: i})
			}
		}, 0, true},
		"for long":               {func(w *worker) { w.flights.underway = 1000 }, maxSettlementWait + 1, false},
		"many":                   {func(w *worker) { w.flights.underway, w.timers.count = 1000, maxSettlements+1 }, 0, false},
		"the lane ends":          {func(w *worker) { w.flights.underway = 1000; w.stopped.Store(true) }, 0, false},
		"no room for other work": {func(w *worker) { w.flights.underway, w.flights.count = 1000, 1<<20 }, 0, false},
	} {
		w := atWork(t, streams.Spec{Kind: streams.Timers, Stream: "DELAY_TIMERS"}, now)
		f := entryRead(w, 7, now, message.Header{"Delay-Cancel": {"1"}})
		w.remove(f)
		w.timers.queue[0].since = now
		tt.change(w)
		if got := w.settlementsWait(now.Add(tt.after)); got != tt.want {
			t.Errorf("%s: they wait %t, want %t", name, got, tt.want)
		}
	}
}

// TestSettledLeavesMemory: a settled timer takes only a small record in memory. Its message is committed only when its
// entries are removed.
func TestSettledLeavesMemory(t *testing.T) {
	now := time.Now()
	w := atWork(t, streams.Spec{Kind: streams.Timers, Stream: "DELAY_TIMERS"}, now)
	f := entryRead(w, 7, now, message.Header{"Delay-Cancel": {"1"}})
	f.timer.Size = 1 << 20
	w.load(f, loadShare)
	if w.flights.bytes < 1<<20 || w.timers.loaded != 1<<20 {
		t.Fatalf("its body takes %d of %d bytes", w.timers.loaded, w.flights.bytes)
	}
	w.remove(f)
	if w.flights.count != 0 || w.flights.bytes != 0 || w.timers.loaded != 0 || w.timers.count != 1 {
		t.Errorf("settled: %d messages with %d bytes, %d of bodies, and %d settlements; want one of these",
			w.flights.count, w.flights.bytes, w.timers.loaded, w.timers.count)
	}
	if w.reading.cursor.Arrived() != 0 {
		t.Error("it is committed before its entries are removed")
	}
	s := w.timers.queue[0]
	removed{settlement: s}.handle(w, w.moment(now))
	if w.timers.count != 0 || w.reading.cursor.Arrived() != 7 {
		t.Errorf("removed: %d settlements, committed up to %d", w.timers.count, w.reading.cursor.Arrived())
	}
}
