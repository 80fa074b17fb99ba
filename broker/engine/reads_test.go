package engine

import (
	"slices"
	"testing"
	"time"

	"delaybroker/broker/acks"
	"delaybroker/broker/message"
	"delaybroker/broker/streams"
	"delaybroker/broker/timer/role"
)

// doubtedSet returns a set that is in doubt, so that it must be read from the leader.
func doubtedSet(w *worker, sequence uint64, target string, size int, now time.Time) *flight {
	f := entryRead(w, sequence, now, message.Header{"Delay-Until": {"2030-01-01T00:00:00Z"}})
	w.flights.removeFromWheel(f)
	f.timer.Handle(role.Published{Err: acks.ErrTimeout}, role.Situation{}) // the answer to the firing was lost
	f.timer.Size, f.request.Target = size, target
	return f
}

// TestNextRead: a timer for whose body there is no memory does not block the timers whose bodies take that memory. No
// body of another tenant takes the memory for which it waits.
func TestNextRead(t *testing.T) {
	now := time.Now()
	w := newTestWorker(t, streams.Spec{Kind: streams.Timers, Stream: "DELAY_TIMERS"}, now)
	large := int(w.flights.account.limit()) / loadShare
	loaded, blocked := doubtedSet(w, 7, "orders.x", large-10, now), doubtedSet(w, 8, "orders.x", large, now)
	small := doubtedSet(w, 9, "mail.x", 1, now)
	w.load(loaded, loadShare)
	for _, f := range []*flight{blocked, loaded, small} {
		w.askLeader(f)
	}
	next := func() *flight {
		f, _ := w.timers.reads.take(func(f *flight) bool { return w.load(f, loadShare) })
		return f
	}
	if got := next(); got != loaded {
		t.Errorf("the first read is of %p, want the loaded timer %p", got, loaded)
	}
	slices.Reverse(w.timers.reads.order)
	if got := next(); got != nil {
		t.Errorf("then, without memory for %p, %p is read, want none", blocked, got)
	}
	w.unload(loaded)
	if got := next(); got != blocked {
		t.Errorf("with memory, %p is read, want the other timer %p", got, blocked)
	}
}

// TestReplacedTimerIsNotRead: a set that was replaced while it waited for a read leaves the queue without the read.
func TestReplacedTimerIsNotRead(t *testing.T) {
	now := time.Now()
	w := newTestWorker(t, streams.Spec{Kind: streams.Timers, Stream: "DELAY_TIMERS"}, now)
	f := entryRead(w, 7, now, message.Header{"Delay-Until": {"2030-01-01T00:00:00Z"}})
	w.flights.removeFromWheel(f)
	w.askLeader(f)
	entryRead(w, 8, now, message.Header{"Delay-Cancel": {"1"}})
	w.startReads(w.moment(now))
	if n := len(w.timers.reads.begun); n > 0 || w.flights.unanswered > 0 {
		t.Errorf("%d timers are being read, with %d requests, want none", n, w.flights.unanswered)
	}
}
