package engine

import (
	"testing"
	"time"

	"delaybroker/broker/config"
	"delaybroker/broker/lane"
	"delaybroker/broker/leader"
	"delaybroker/broker/message"
)

func someFlights() *flights {
	return newFlights(newBudget(config.DefaultHoldBytes, 1).Open(freeShare))
}

// TestFlightsAreCounted: a message is counted with its bytes until its flight ends, wherever it waits.
func TestFlightsAreCounted(t *testing.T) {
	f := someFlights()
	first := f.take(lane.Stored{Sequence: 1, Size: 1000}, lane.Mark{})
	second := f.take(lane.Stored{Sequence: 2}, lane.Mark{})
	if f.count != 2 || f.bytes != first.size+second.size || first.size <= second.size {
		t.Fatalf("%d messages of %d bytes, want two of %d and %d", f.count, f.bytes, first.size, second.size)
	}
	f.hold(first, epoch)
	f.untimed = append(f.untimed, second)
	if got := f.waiting(); got != 2 {
		t.Errorf("%d wait, want 2", got)
	}
	f.setOverdue(first, epoch, true)
	for _, fl := range f.due(epoch) {
		f.end(fl)
	}
	f.untimed = nil
	f.end(second)
	if f.count != 0 || f.bytes != 0 || f.waiting() != 0 || f.overdue.Len() != 0 {
		t.Errorf("in the end there are %d of %d bytes, %d wait and %d are overdue",
			f.count, f.bytes, f.waiting(), f.overdue.Len())
	}
}

// TestOldest checks the earliest overdue time of the messages underway and on the wheel. On the wheel, messages count
// as overdue a lookahead later.
func TestOldest(t *testing.T) {
	f := someFlights()
	if _, any := f.oldest(); any {
		t.Error("something is the oldest of nothing")
	}
	moving, waiting := new(flight), new(flight)
	f.hold(waiting, epoch)
	for _, tt := range []struct{ since, want time.Duration }{
		{lookahead / 2, lookahead / 2}, {lookahead, lookahead}, {lookahead + 1, lookahead}, {-time.Hour, -time.Hour},
	} {
		f.setOverdue(moving, epoch.Add(tt.since), true)
		if got, _ := f.oldest(); got != epoch.Add(tt.want) {
			t.Errorf("with one that should have left %s after: since %s, want %s", tt.since, got.Sub(epoch), tt.want)
		}
	}
	f.setOverdue(moving, leader.Time{}, false)
	if got, _ := f.oldest(); got != epoch.Add(lookahead) {
		t.Errorf("with none on its way: since %s, want %s", got.Sub(epoch), lookahead)
	}
}

// TestRoomForUnprovenMessages: a bounded number of messages wait for the key of their seal, and each counts once.
func TestRoomForUnprovenMessages(t *testing.T) {
	f, local := someFlights(), time.Now()
	var all []*flight
	for range maxUnproven {
		fl := &flight{size: 1, unproven: &unproven{incoming: message.Incoming{}}}
		all = append(all, fl)
		if !f.await(fl, local) || !f.await(fl, local.Add(time.Second)) {
			t.Fatalf("no room for number %d", len(all))
		}
	}
	more := &flight{size: 1, unproven: new(unproven)}
	if f.await(more, local) {
		t.Error("there is room for one more than there may be")
	}
	f.proven(more)
	f.proven(all[0])
	if large := (&flight{size: maxUnprovenBytes, unproven: new(unproven)}); f.await(large, local) {
		t.Error("there is room for more bytes than there may be")
	}
}
