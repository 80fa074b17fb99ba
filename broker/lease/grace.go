package lease

import "time"

const (
	// beatInterval is the interval at which an instance that is not alone raises its counter.
	beatInterval = time.Second
	// lostAfter is the time for which an instance may act after it sent its last good beat. After the same time without a
	// change of the counter, other instances take over. They count from the time at which they read the counter, which is
	// later. So the instance stops before it is replaced.
	lostAfter = 5 * time.Second
	// silentAfter is the time for which the instances change nothing while the stream refuses or ignores their writes.
	// After that time they continue without the stream: see divideByCalls. An election takes at most 9 s.
	silentAfter = 15 * time.Second
	// signInterval is the interval at which an instance that is alone renews its own sign of life.
	signInterval = 2 * time.Second
	// maxSignAge is the age at which such a sign of life expires. If the sign is older, the instance was suspended.
	maxSignAge = 4 * time.Second
)

// instant is a time by both local clocks. The monotonic clock stops while a machine is suspended, and the wall clock
// may be set, so the time that passed is the longer of the two.
type instant struct {
	wall time.Time
	mono time.Duration
}

func (i instant) elapsed(now instant) time.Duration {
	return max(now.mono-i.mono, now.wall.Sub(i.wall))
}

// grace determines how long an instance may act on its leases without a new good round.
type grace struct {
	since instant // when the last good beat was sent; if alone, time of the last sign of life
	alone bool
	// unanswered is the start of the last attempt to beat. It is nil if that attempt succeeded, or if the grace has ended
	// meanwhile.
	unanswered *instant
}

// permits reports whether the instance may act now.
func (g *grace) permits(now instant, connected bool) bool {
	if g == nil {
		return false
	}
	passed := g.since.elapsed(now)
	switch {
	case g.alone:
		return passed < maxSignAge && connected
	case passed < lostAfter:
		return true
	}
	return g.unanswered != nil && connected && g.unanswered.elapsed(now) < lostAfter
}
