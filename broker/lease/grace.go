package lease

import "time"

const (
	// beatEvery is how often an instance raises its counter while there are others.
	beatEvery = time.Second
	// lostAfter is how long an instance goes on after it sent its last good beat, and how long its counter must stand
	// still before others take over. The others count from the time they read the counter, which is later. So the instance
	// stops before it is replaced.
	lostAfter = 5 * time.Second
	// silentAfter is how long the instances change nothing while the stream refuses or ignores their writes. An election
	// takes up to 9 s. After silentAfter they go on without the stream: see assume.
	silentAfter = 15 * time.Second
	// An instance that is alone does not write. Its own sign of life tells it whether it was stopped meanwhile.
	signEvery = 2 * time.Second
	signTrust = 4 * time.Second
)

// instant is a moment by both local clocks. The monotonic clock stands still while a machine is suspended, and the wall
// clock may be set, so the time that passed is the longer of the two.
type instant struct {
	wall time.Time
	mono time.Duration
}

func (i instant) until(now instant) time.Duration {
	return max(now.mono-i.mono, now.wall.Sub(i.wall))
}

// grace is the time for which an instance may act on its leases without another proof that they are its own.
type grace struct {
	since instant // when the last good beat was sent; for an instance that is alone, its last sign of life
	alone bool
	// unanswered is when the last attempt to beat began, if that failed, and if the grace held all the time since the last
	// good beat.
	unanswered *instant
}

// holds reports whether the instance may act now.
func (g *grace) holds(now instant, connected bool) bool {
	if g == nil {
		return false
	}
	passed := g.since.until(now)
	switch {
	case g.alone:
		return passed < signTrust && connected
	case passed < lostAfter:
		return true
	}
	return g.unanswered != nil && connected && g.unanswered.until(now) < lostAfter
}
