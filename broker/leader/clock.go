package leader

import "time"

const (
	// Trust is the time for which a proof of the leader's time may be used to fire messages. While NTP corrects a wall
	// clock, that clock runs at most 500 ppm faster or slower than the monotonic clock. Within Trust the difference is
	// at most 50 µs. That is less than the time to store a publish, so no delivery is early. In half a minute the
	// difference would be 15 ms.
	Trust = 100 * time.Millisecond
	// A message's timestamp is a proof if it differs from the predicted time of the leader by at most freshness. The
	// leader has then stored the message immediately before.
	freshness = time.Millisecond
)

// Clock estimates the time of one stream's leader. The estimate is never later than the proven time: if an answer
// received at r has the leader's time ts, then at now the leader's clock shows at least ts + (now − r). The clock uses
// the best such bound within Trust. It lags by the travel time of the fastest answer, about 100 µs on a local network.
// The timestamp of a message that was stored immediately before is a bound too, and needs no request.
//
// Steps of the local wall clock do not matter, because Clock uses only differences of the monotonic clock. The
// monotonic clock stops while a machine is suspended: see [Clock.Suspended].
//
// A Clock is not safe for concurrent use.
type Clock struct {
	base     time.Time     // local, with monotonic reading
	best     [2]bound      // in the current half of Trust, and in the previous half
	proved   time.Duration // time of the last proof, monotonic since base
	answered time.Duration // the leader's clock minus (base plus monotonic), by the last answer
	at       time.Time     // local; when the last answer was received
	known    bool          // the leader has answered at least once
	last     uint64        // the stream's last sequence, in the last answer
	leader   string        // the leader's name, in the last answer
}

// bound is the largest proven difference between the leader's clock and base plus monotonic, in one half of Trust.
type bound struct {
	since  time.Duration // start of the half, monotonic since base
	offset time.Duration
	ok     bool
}

// Answer is an answer of a stream's leader to a request for the stream's state.
type Answer struct {
	Time     time.Time // the leader's clock when it answered
	Received time.Time // local clock when the answer arrived
	Leader   string    // the leader's name; empty on a single server
	LastSeq  uint64    // the last sequence of the stream
}

// NewClock returns a clock without an answer. Local is the local time now.
func NewClock(local time.Time) *Clock { return &Clock{base: local} }

// Base returns the local time at which the clock was made, with its monotonic reading.
func (c *Clock) Base() time.Time { return c.base }

// Looked returns the local time of the last answer. If there was no answer, ok is false.
func (c *Clock) Looked() (at time.Time, ok bool) { return c.at, c.known }

// Known reports whether the leader has answered.
func (c *Clock) Known() bool { return c.known }

// Leader returns the name of the leader that answered last.
func (c *Clock) Leader() string { return c.leader }

// Look records an answer of the stream's leader.
func (c *Clock) Look(a Answer) {
	if a.Received.Before(c.at) {
		return // a newer answer arrived first; this one must not count as a new proof
	}
	c.at = a.Received
	if a.Leader != c.leader {
		c.leader, c.best = a.Leader, [2]bound{} // a new leader has another clock
	}
	c.known, c.answered, c.last = true, c.Offset(At(a.Time), a.Received), a.LastSeq
	c.prove(c.answered, a.Received)
}

// Observe records the timestamp of a message that was just received. An old message proves nothing. A message stored
// before the last answer may prove too much: another leader may have stamped it, or this leader before a correction of
// its clock.
func (c *Clock) Observe(sequence uint64, stored Time, received time.Time) {
	if offset := c.Offset(stored, received); c.known && sequence > c.last && offset > c.answered-freshness {
		c.prove(offset, received)
	}
}

// Offset returns the leader's clock minus (base plus monotonic), if the leader's clock showed at when the local clock
// showed local.
func (c *Clock) Offset(at Time, local time.Time) time.Duration {
	return at.stamp.Sub(c.base.Round(0)) - local.Sub(c.base)
}

func (c *Clock) prove(offset time.Duration, received time.Time) {
	mono := received.Sub(c.base)
	c.proved = mono
	if !c.best[0].ok || mono-c.best[0].since >= Trust/2 {
		c.best[1], c.best[0] = c.best[0], bound{since: mono}
	}
	if b := &c.best[0]; !b.ok || offset > b.offset {
		b.offset, b.ok = offset, true
	}
}

// Now returns a lower bound of the leader's time when the local clock shows local. If fresh is false, there is no proof
// within Trust and now is an estimate: it may be used to plan, but not to fire messages.
func (c *Clock) Now(local time.Time) (now Time, fresh bool) {
	mono := local.Sub(c.base)
	offset := c.answered
	for _, b := range c.best {
		if b.ok && mono-b.since <= Trust && (!fresh || b.offset > offset) {
			offset, fresh = b.offset, true
		}
	}
	return At(c.base.Round(0).Add(mono + offset)), fresh
}

// Suspended reports whether the wall clock and the monotonic clock have diverged since the last answer, as they do
// while a machine is suspended. The estimate of the leader's time may then be wrong.
func (c *Clock) Suspended(local time.Time) bool {
	const tolerance = time.Second
	drift := local.Round(0).Sub(c.at.Round(0)) - local.Sub(c.at)
	return c.known && drift.Abs() > tolerance
}

// Age returns the time since the last proof, or Trust if there is none.
func (c *Clock) Age(local time.Time) time.Duration {
	if !c.known {
		return Trust
	}
	return local.Sub(c.base) - c.proved
}
