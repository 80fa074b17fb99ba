package engine

import (
	"testing"
	"time"

	"delaybroker/broker/lane"
	"delaybroker/broker/leader"
	"delaybroker/broker/message"
	"delaybroker/broker/stats"
	"delaybroker/broker/streams"
)

// idleWorker returns a worker of a level with a delay of an hour, without messages.
func idleWorker(t *testing.T, now time.Time) *worker {
	t.Helper()
	return newTestWorker(t, streams.Spec{Kind: streams.Level, Delay: time.Hour}, now)
}

func (w *worker) statusAt(local time.Time) stats.LaneStatus {
	var l stats.LaneStatus
	w.gauge.Fill(&l, local)
	return l
}

// TestOverdueWithoutTheTime: a message that waits for the leader's time is not overdue, and hides no overdue message.
func TestOverdueWithoutTheTime(t *testing.T) {
	now := time.Now()
	w := idleWorker(t, now)
	w.flights.untimed = append(w.flights.untimed, &flight{}) // read an hour after it was stored
	w.report(now)
	if got := w.statusAt(now.Add(time.Minute)).Overdue; got != 0 {
		t.Errorf("overdue by %s, although no message is overdue", got)
	}
	w = idleWorker(t, now)
	w.flights.hold(&flight{}, leader.At(now.Add(time.Second)))
	w.report(now)
	w.flights.untimed = append(w.flights.untimed, &flight{})
	w.report(now)
	if got, want := w.statusAt(now.Add(time.Minute)).Overdue, 59*time.Second-lookahead; got != want {
		t.Errorf("overdue by %s, want %s", got, want)
	}
}

// TestOverdueWhileItWaitsAgain: after a refusal, or while its target is stalled, a message is overdue from its due time
// on. A message that waits for its reserved send time is not overdue.
func TestOverdueWhileItWaitsAgain(t *testing.T) {
	now := time.Now()
	ago, soon := now.Add(-10*time.Second), now.Add(20*time.Second)
	for _, test := range []struct {
		name    string
		kind    laneKind
		request message.Request
		want    time.Duration
	}{
		{"waits for the first time", plainLane{}, message.Request{Due: soon}, 0},
		{"refused", retryLane{}, message.Request{RetryAt: soon, Due: ago, Attempts: 1}, 10 * time.Second},
		{"deferred", retryLane{}, message.Request{RetryAt: soon, Due: ago}, 10 * time.Second},
		{"paced", plainLane{}, message.Request{RetryAt: soon, Due: ago, Reservation: "x"}, 0},
		{"paced after it", retryLane{}, message.Request{RetryAt: soon, Due: ago, Reservation: "x", Attempts: 1}, 0},
	} {
		w := idleWorker(t, now)
		w.plan.kind = test.kind
		f := &flight{Message: lane.Message{At: now}, request: test.request}
		w.proceed(f, moment{now: leader.At(now), proven: true})
		w.report(now)
		if got := w.statusAt(now).Overdue; got != test.want {
			t.Errorf("%s: overdue by %s, want %s", test.name, got, test.want)
		}
	}
}

// TestStatusOfALoopThatHangs: the lateness and the age of a commit grow while the loop hangs, and the clock's offset
// becomes unknown.
func TestStatusOfALoopThatHangs(t *testing.T) {
	now := time.Now()
	w := idleWorker(t, now)
	w.flights.setOverdue(&flight{}, leader.At(now.Add(-time.Second)), true)
	w.reading.cursor.Done(w.reading.cursor.Begin(1, "x"))
	w.report(now)
	w.report(now.Add(time.Minute))
	l := w.statusAt(now.Add(time.Hour))
	if got, want := l.Overdue, time.Hour+time.Second; got != want {
		t.Errorf("overdue by %s, want %s", got, want)
	}
	if got, want := l.CommitAge, time.Hour; got != want {
		t.Errorf("not committed for %s, want %s", got, want)
	}
	if l.ClockKnown {
		t.Error("the clock's offset is known by a sample of an hour ago")
	}
	if l := w.statusAt(now.Add(stats.MaxClockAge)); !l.ClockKnown || l.ClockOffset != 0 {
		t.Errorf("clock offset %s, known %v, want 0 and true", l.ClockOffset, l.ClockKnown)
	}
}
