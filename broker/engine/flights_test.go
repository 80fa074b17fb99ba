package engine

import (
	"testing"
	"time"

	"delaybroker/broker/config"
	"delaybroker/broker/lane"
	"delaybroker/broker/leader"
	"delaybroker/broker/message"
)

func newTestFlights() *flights {
	return newFlights(newBudget(config.DefaultHoldBytes, 1).Open(freeShare))
}

// TestFlightsAreCounted: a message and its bytes are counted until its flight ends, wherever the message waits.
func TestFlightsAreCounted(t *testing.T) {
	f := newTestFlights()
	first := f.begin(lane.Message{Sequence: 1, Size: 1000}, lane.Mark{})
	second := f.begin(lane.Message{Sequence: 2}, lane.Mark{})
	if f.count != 2 || f.bytes != first.size+second.size || first.size <= second.size {
		t.Fatalf("%d messages of %d bytes, want two of %d and %d", f.count, f.bytes, first.size, second.size)
	}
	f.hold(first, epoch)
	f.untimed = append(f.untimed, second)
	if got := f.waiting(); got != 2 {
		t.Errorf("%d messages wait, want 2", got)
	}
	f.setOverdue(first, epoch, true)
	for _, fl := range f.takeDue(epoch) {
		f.end(fl)
	}
	f.untimed = nil
	f.end(second)
	if f.count != 0 || f.bytes != 0 || f.waiting() != 0 || f.overdue.Len() != 0 {
		t.Errorf("in the end there are %d of %d bytes, %d wait and %d are overdue",
			f.count, f.bytes, f.waiting(), f.overdue.Len())
	}
}

// TestOldestOverdue checks the earliest overdue time of all messages. A message on the wheel counts as overdue a
// lookahead after its time on the wheel.
func TestOldestOverdue(t *testing.T) {
	f := newTestFlights()
	if _, any := f.oldestOverdue(); any {
		t.Error("a message is overdue, although there is no message")
	}
	moving, waiting := new(flight), new(flight)
	f.hold(waiting, epoch)
	for _, tt := range []struct{ since, want time.Duration }{
		{lookahead / 2, lookahead / 2}, {lookahead, lookahead}, {lookahead + 1, lookahead}, {-time.Hour, -time.Hour},
	} {
		f.setOverdue(moving, epoch.Add(tt.since), true)
		if got, _ := f.oldestOverdue(); got != epoch.Add(tt.want) {
			t.Errorf("with a message that is overdue since %s: %s, want %s", tt.since, got.Sub(epoch), tt.want)
		}
	}
	f.setOverdue(moving, leader.Time{}, false)
	if got, _ := f.oldestOverdue(); got != epoch.Add(lookahead) {
		t.Errorf("with only the message on the wheel: %s, want %s", got.Sub(epoch), lookahead)
	}
}

// TestRoomForKeyWaits: the number and bytes of messages that wait for the key of their seal are bounded, and each
// message counts once.
func TestRoomForKeyWaits(t *testing.T) {
	f, local := newTestFlights(), time.Now()
	var all []*flight
	for range maxKeyWaits {
		fl := &flight{size: 1, keyWait: &keyWait{incoming: message.Incoming{}}}
		all = append(all, fl)
		if !f.beginKeyWait(fl, local) || !f.beginKeyWait(fl, local.Add(time.Second)) {
			t.Fatalf("no room for number %d", len(all))
		}
	}
	more := &flight{size: 1, keyWait: new(keyWait)}
	if f.beginKeyWait(more, local) {
		t.Error("there is room for more messages than maxKeyWaits")
	}
	f.endKeyWait(more)
	f.endKeyWait(all[0])
	if large := (&flight{size: maxKeyWaitBytes, keyWait: new(keyWait)}); f.beginKeyWait(large, local) {
		t.Error("there is room for more bytes than maxKeyWaitBytes")
	}
}
