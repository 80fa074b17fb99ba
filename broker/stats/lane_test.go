package stats

import (
	"testing"

	"delaybroker/broker/streams"
)

// TestLate: an overdue message of a lane in which messages wait for their targets does not make the broker late.
func TestLate(t *testing.T) {
	for kind, want := range map[streams.Kind]bool{
		streams.Level: true, streams.Intake: true, streams.Timers: true, streams.Retry: false, streams.Paused: false,
	} {
		if l := (LaneStatus{Kind: string(kind), Overdue: MaxOverdue}); l.Late() != want {
			t.Errorf("%s: late %v, want %v", kind, l.Late(), want)
		}
	}
	if (LaneStatus{Kind: string(streams.Level), Overdue: MaxOverdue - 1}).Late() {
		t.Error("late before MaxOverdue")
	}
}
