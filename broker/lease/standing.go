package lease

import (
	"sync/atomic"
	"time"
)

const (
	// beatEvery is how often an instance counts up while there are others.
	beatEvery = time.Second
	// lostAfter is how long after sending its last good beat an instance stops on its own account, and how long its
	// counter must have stood still before others take over. The observer's time begins when it has read the counter,
	// which is later, so the owner stops first.
	lostAfter = 5 * time.Second
	// silentAfter is how long the instances leave everything as it is while the bucket does not take what they write: an
	// election takes up to 9 s. Then they go on without it: see assume.
	silentAfter = 15 * time.Second
	// An instance that is alone sends nothing. It notices that it was stopped by its own sign of life.
	signEvery = 2 * time.Second
	signTrust = 4 * time.Second
)

// instant is a moment by both local clocks. The monotonic clock stands still while a machine is suspended, the wall
// clock may be set; what passed is the longer of the two.
type instant struct {
	wall time.Time
	mono time.Duration
}

func (i instant) until(now instant) time.Duration {
	return max(now.mono-i.mono, now.wall.Sub(i.wall))
}

// standing is what an instance knows of its own right to go on.
type standing struct {
	since instant // when the last good beat was sent; alone, the last sign of life
	alone bool
	// silent is when the last attempt to beat was begun that failed, if the instance was good all the time since.
	silent *instant
}

// good reports whether the instance may act now.
func (s *standing) good(now instant, connected bool) bool {
	if s == nil {
		return false
	}
	passed := s.since.until(now)
	switch {
	case s.alone:
		return passed < signTrust && connected
	case passed < lostAfter:
		return true
	}
	return s.silent != nil && connected && s.silent.until(now) < lostAfter
}

// debt is when an owner's loop was given the oldest beat that it has not taken.
type debt struct{ atomic.Pointer[instant] }

// stuck reports whether it has been too long.
func (d *debt) stuck(now instant) bool {
	since := d.Load()
	return since != nil && since.until(now) >= lostAfter
}
