package muster

import (
	"testing"
	"time"

	"delaybroker/broker/leader"
)

// TestMusterOfTwo: of two lanes with a backlog neither is more than a step ahead, and nobody waits for a lane that has
// left.
func TestMusterOfTwo(t *testing.T) {
	m, woken := new(Muster), 0
	epoch := leader.At(time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC))
	a, b := m.Join(func() {}), m.Join(func() { woken++ })
	if got := b.Say(epoch.Add(time.Hour)); !got.IsZero() {
		t.Errorf("up to %s may be sent while another lane has read nothing", got.Sub(epoch))
	}
	if got, want := a.Say(epoch), epoch.Add(Step); got != want || woken != 1 {
		t.Errorf("up to %s may be sent, and the other was woken %d times; want %s and once",
			got.Sub(epoch), woken, Step)
	}
	if got, want := b.Say(epoch.Add(time.Hour)), epoch.Add(Step); got != want {
		t.Errorf("up to %s may be sent, want %s", got.Sub(epoch), Step)
	}
	a.Leave()
	if got, want := b.Say(epoch.Add(time.Hour)), epoch.Add(time.Hour+Step); got != want || woken != 2 {
		t.Errorf("alone, up to %s may be sent, and it was woken %d times; want %s and twice",
			got.Sub(epoch), woken, want.Sub(epoch))
	}
	m.Expect(1)
	if got := b.Say(epoch.Add(time.Hour)); !got.IsZero() {
		t.Errorf("up to %s may be sent while it is not known who takes part", got.Sub(epoch))
	}
	m.Known()
	if woken != 3 {
		t.Errorf("woken %d times when it is known, want three times", woken)
	}
}
