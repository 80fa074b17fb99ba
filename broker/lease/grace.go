package lease

import "time"

const (
	// beatInterval is the interval at which an instance that is not alone raises its counter.
	beatInterval = time.Second
	// livenessTimeout is the time for which an instance may act after it sent its last good beat; grace.permits has the
	// exceptions. After the same time without a change of the counter, other instances take over. They count from the time
	// at which they read the counter, which is later. So the instance stops before it is replaced.
	livenessTimeout = 5 * time.Second
	// outageTimeout is the time for which the instances wait for a stream that fails. After that time they continue
	// without the stream: see divideByCalls. An election times out after at most 9 s. For a full stream, the time is
	// livenessTimeout.
	outageTimeout = 15 * time.Second
	// signInterval is the interval at which an instance that is alone renews its own sign of life.
	signInterval = 2 * time.Second
	// maxSignAge is the age at which this sign of life expires: an instance with an older sign was suspended or blocked.
	maxSignAge = 4 * time.Second
)

// instant is a time by both local clocks. The monotonic clock stops while a machine is suspended, and the wall clock
// may be set, so the elapsed time is the longer of the two measurements.
type instant struct {
	wall time.Time
	mono time.Duration
}

func (i instant) elapsed(now instant) time.Duration {
	return max(now.mono-i.mono, now.wall.Sub(i.wall))
}

// grace determines how long an instance may act on its leases without a new good beat.
type grace struct {
	// beatSentAt is the time of the last good beat or, if alone, of the last sign of life. In an outage, handleFailure and
	// divideByCalls may set it to a later time.
	beatSentAt instant
	alone      bool // beatSentAt is a sign of life, and the grace is maxSignAge
	// attemptStart is the start of the last attempt to beat that failed before the grace ended; nil after a good beat.
	attemptStart *instant
}

// permits reports whether the instance may act now.
func (g *grace) permits(now instant, connected bool) bool {
	if g == nil {
		return false
	}
	age := g.beatSentAt.elapsed(now)
	switch {
	case g.alone:
		return age < maxSignAge && connected
	case age < livenessTimeout:
		return true
	}
	return g.attemptStart != nil && connected && g.attemptStart.elapsed(now) < livenessTimeout
}
