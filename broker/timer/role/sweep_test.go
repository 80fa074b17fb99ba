package role

import (
	"errors"
	"testing"
	"time"

	"delaybroker/broker/leader"
)

// TestSweepWaits: the first pass is due when the lane has been read. Later passes take a hundredth of the time, and
// wait until a timer may be late by a minute.
func TestSweepWaits(t *testing.T) {
	var s Sweep
	local := time.Now()
	want := func(when string, at leader.Time, local time.Time, wait time.Duration, ok bool) {
		t.Helper()
		if got, due := s.Wait(at, local, false); got > 0 != (wait > 0) || wait > 0 && got != wait || due != ok {
			t.Errorf("%s: in %s, %t; want %s, %t", when, got, due, wait, ok)
		}
	}
	now := leader.At(set)
	if _, due := s.Wait(now, local, true); due {
		t.Error("a pass of an empty stream is due")
	}
	want("at first", now, local, 0, true)
	if cutoff := s.Begin(now); !cutoff.Equal(set.Add(-time.Minute)) {
		t.Errorf("the pass looks for timers that were due before %s", cutoff)
	}
	want("during a pass", now, local, 0, false)
	s.End(Pass{took: 2 * time.Second}, local)
	want("without a timer", now, local, 0, false)
	s.noteDue(set.Add(time.Hour))
	s.noteDue(time.Time{}) // the due time of a set that cannot be parsed
	want("with a timer", now, local, time.Hour+time.Minute, true)
	s.noteDue(set)
	want("with an earlier timer", now, local, 200*time.Second, true)
	s.Begin(now)
	s.End(Pass{Err: errors.New("x")}, local)
	want("after a failure", now, local, time.Minute, true)
}
