package engine

import (
	"testing"
	"time"
)

// TestBacklogOpens: a backlog opens when the lane reads a long overdue message, or cannot send.
func TestBacklogOpens(t *testing.T) {
	local := time.Now()
	b := newBacklog(new(watermark), func() {})
	for _, tt := range []struct {
		late time.Duration
		want bool
	}{{-1, false}, {0, false}, {backlogLate - 1, false}, {backlogLate, true}, {0, true}, {-1, false}} {
		if got := b.gather(tt.late, true, epoch, local); got != tt.want {
			t.Errorf("late by %s: held back: %v, want %v", tt.late, got, tt.want)
		}
	}
	if !b.open || b.ordered() {
		t.Errorf("open %v, ordered with other lanes %v; want true and false", b.open, b.ordered())
	}
	b.end()
	if b.holdBack(); !b.open || !b.ordered() || !b.waitStart.IsZero() {
		t.Errorf("%+v while no message can be sent: want open, ordered with other lanes, and not sendable", b)
	}
}

// TestBacklogOfALevel: a message is sent only if it is due before all messages that are not read yet, if the memory is
// full, or after backlogWait.
func TestBacklogOfALevel(t *testing.T) {
	local, now := time.Now(), epoch.Add(2*time.Hour)
	r, f := hourlyReading(), newTestFlights()
	b := newBacklog(new(watermark), func() {})
	if until, wait := b.sendable(r, f, false, now, local); until != now || wait != forever {
		t.Errorf("closed: sends up to %s and waits %s, want now and forever", until.Sub(now), wait)
	}
	r.record(item(1, 1, after(0), 999))
	f.hold(new(flight), epoch.Add(time.Hour))
	b.gather(time.Hour, true, now, local)
	until, wait := b.sendable(r, f, false, now, local)
	if want := epoch.Add(time.Hour - lookahead); until != want || wait != backlogWait {
		t.Errorf("open: sends up to %s for %s, want up to %s for %s", until.Sub(epoch), wait, want.Sub(epoch), backlogWait)
	}
	if until, _ := b.sendable(r, f, true, now, local); until != now {
		t.Errorf("full: sends up to %s, want now", until.Sub(epoch))
	}
	if until, wait := b.sendable(r, f, false, now, local.Add(backlogWait)); b.open || until != now || wait != forever {
		t.Errorf("after backlogWait: open %v, sends up to %s and waits %s; want closed, now and forever",
			b.open, until.Sub(now), wait)
	}
}
