package engine

import (
	"testing"
	"time"
)

// TestWatermark: a lane with a backlog sends no message that is due more than a step after the first message of another
// lane. No lane waits for a lane that has left, and all lanes wait until each expected lane is decided.
func TestWatermark(t *testing.T) {
	g, woken := new(watermark), 0
	a, b := g.join(func() {}), g.join(func() { woken++ })
	if got := b.advance(epoch.Add(time.Hour)); !got.IsZero() {
		t.Errorf("up to %s may be sent while another lane has read no message", got.Sub(epoch))
	}
	if got, want := a.advance(epoch), epoch.Add(watermarkStep); got != want || woken != 1 {
		t.Errorf("up to %s may be sent, and the other was woken %d times; want %s and once",
			got.Sub(epoch), woken, watermarkStep)
	}
	if got, want := b.advance(epoch.Add(time.Hour)), epoch.Add(watermarkStep); got != want {
		t.Errorf("up to %s may be sent, want %s", got.Sub(epoch), watermarkStep)
	}
	a.leave()
	if got, want := b.advance(epoch.Add(time.Hour)), epoch.Add(time.Hour+watermarkStep); got != want || woken != 2 {
		t.Errorf("alone, up to %s may be sent, and the lane was woken %d times; want %s and twice",
			got.Sub(epoch), woken, want.Sub(epoch))
	}
	g.expect(1)
	if got := b.advance(epoch.Add(time.Hour)); !got.IsZero() {
		t.Errorf("up to %s may be sent while an expected lane is undecided", got.Sub(epoch))
	}
	g.Decide()
	if woken != 3 {
		t.Errorf("woken %d times when the lane is decided, want three times", woken)
	}
}
