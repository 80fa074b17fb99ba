package broker

import (
	"testing"
	"time"
)

// TestBacklogOpens when a message is read that is long overdue, or when nothing could be sent for a while.
func TestBacklogOpens(t *testing.T) {
	local := time.Now()
	b := newBacklog(new(muster), func() {})
	for _, tt := range []struct {
		late time.Duration
		want bool
	}{{-1, false}, {0, false}, {backlogLate - 1, false}, {backlogLate, true}, {0, true}, {-1, false}} {
		if got := b.gather(tt.late, true, epoch, local); got != tt.want {
			t.Errorf("one that is late by %s is kept back: %v, want %v", tt.late, got, tt.want)
		}
	}
	if !b.open || b.together {
		t.Errorf("it is open %v, together with others %v; want by itself", b.open, b.together)
	}
	b.end()
	if b.holdBack(); !b.open || !b.together || !b.since.IsZero() {
		t.Errorf("%+v after nothing could be sent: want it open, together with others, since nothing", b)
	}
}

// TestBacklogOfALevel: a message is sent only if it is due before all messages that may still be read, and no wait is
// long.
func TestBacklogOfALevel(t *testing.T) {
	local, now := time.Now(), epoch.Add(2*time.Hour)
	r, f := hourly(), someFlights()
	b := newBacklog(new(muster), func() {})
	if until, wait := b.sendable(r, f, false, now, local); until != now || wait != forever {
		t.Errorf("closed, it sends up to %s and waits %s, want now and for ever", until.Sub(now), wait)
	}
	r.took(item(1, 1, after(0), 999))
	f.hold(new(flight), epoch.Add(time.Hour))
	b.gather(time.Hour, true, now, local)
	until, wait := b.sendable(r, f, false, now, local)
	if want := epoch.Add(time.Hour - lookahead); until != want || wait != backlogWait {
		t.Errorf("it sends up to %s for %s, want to %s for %s", until.Sub(epoch), wait, want.Sub(epoch), backlogWait)
	}
	if until, _ := b.sendable(r, f, true, now, local); until != now {
		t.Errorf("nothing more can be read, and it sends up to %s, want now", until.Sub(epoch))
	}
	if until, wait := b.sendable(r, f, false, now, local.Add(backlogWait)); b.open || until != now || wait != forever {
		t.Errorf("the time is up, and it is open %v, sends up to %s and waits %s", b.open, until.Sub(epoch), wait)
	}
}

// TestMusterOfTwo: of two lanes with a backlog neither is more than a step ahead, and nobody waits for a lane that has
// left.
func TestMusterOfTwo(t *testing.T) {
	m, woken := new(muster), 0
	a, b := newBacklog(m, func() {}), newBacklog(m, func() { woken++ })
	m.join(a)
	m.join(b)
	if got := m.say(b, epoch.Add(time.Hour)); !got.IsZero() {
		t.Errorf("up to %s may be sent while another lane has read nothing", got.Sub(epoch))
	}
	if got, want := m.say(a, epoch), epoch.Add(musterStep); got != want || woken != 1 {
		t.Errorf("up to %s may be sent, and the other was woken %d times; want %s and once",
			got.Sub(epoch), woken, musterStep)
	}
	if got, want := m.say(b, epoch.Add(time.Hour)), epoch.Add(musterStep); got != want {
		t.Errorf("up to %s may be sent, want %s", got.Sub(epoch), musterStep)
	}
	m.leave(a)
	if got, want := m.say(b, epoch.Add(time.Hour)), epoch.Add(time.Hour+musterStep); got != want || woken != 2 {
		t.Errorf("alone, up to %s may be sent, and it was woken %d times; want %s and twice",
			got.Sub(epoch), woken, want.Sub(epoch))
	}
	m.expect(1)
	if got := m.say(b, epoch.Add(time.Hour)); !got.IsZero() {
		t.Errorf("up to %s may be sent while it is not known who takes part", got.Sub(epoch))
	}
	m.known()
	if woken != 3 {
		t.Errorf("woken %d times when it is known, want three times", woken)
	}
}
