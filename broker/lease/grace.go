package lease

import "time"

const (
	// beatInterval is the interval at which the active instance renews its claim while other instances stand by.
	beatInterval = 500 * time.Millisecond
	// aloneInterval replaces beatInterval while no other instance calls.
	aloneInterval = 2 * time.Second
	// livenessTimeout is the time for which an instance may act after it sent its last successful beat; grace.permits has
	// the exceptions. After the same time without a new beat, another instance takes over. It counts from the time at
	// which it read the beat, which is later. So the instance stops before it is replaced.
	livenessTimeout = 5 * time.Second
	// outageTimeout is the time for which the instances wait for a stream that fails. After that time they continue
	// without the stream: see chooseByCalls. An election times out after at most 9 s. For a full stream, the time is
	// livenessTimeout.
	outageTimeout = 15 * time.Second
	// pingTimeout is the maximum time for the server's answer to a ping, after a request without an answer.
	pingTimeout = 500 * time.Millisecond
	// maxBlip is the time for which an instance may act without a connection. It is shorter than silenceTimeout.
	maxBlip = 500 * time.Millisecond
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

// grace determines how long the active instance may act without a new successful beat.
type grace struct {
	// beatSentAt is the time of the last successful beat. In an outage, fail and chooseByCalls may set it to a later
	// time.
	beatSentAt instant
	// attemptStart is the start of the last attempt to beat that failed before the grace ended; nil after a successful
	// beat.
	attemptStart *instant
}

// permits reports whether the instance may act now. LostAt is the time at which the connection was lost, or nil.
func (g *grace) permits(now instant, lostAt *instant) bool {
	switch {
	case g == nil, lostAt != nil && lostAt.elapsed(now) >= maxBlip:
		return false
	case g.beatSentAt.elapsed(now) < livenessTimeout:
		return true
	}
	return g.attemptStart != nil && lostAt == nil && g.attemptStart.elapsed(now) < livenessTimeout
}
