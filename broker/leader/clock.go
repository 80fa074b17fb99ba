package leader

import "time"

const (
	// Trust is how long a proof of the leader's time is good to fire by. A wall clock that is being corrected runs up
	// to 500 ppm off the monotonic one: 50 µs in this time, which is less than a publish takes to be stored, so that
	// nothing is early by it; in half a minute it would be 15 ms.
	Trust = 100 * time.Millisecond
	// tight is how far a message's timestamp may lie behind the time that the last look foretells and still count as
	// a proof of the time: the message was stored just now.
	tight = time.Millisecond
)

// Clock tells the time of one stream's leader. The leader's clock has stamped the messages, so only by that clock can a
// delivery be early. The time told is never later than is proven: when the leader's clock said ts in an answer received
// at r, it shows at least ts + (now − r) now. The best bound of this kind within Trust is the time; it lags by the
// fastest answer's way back, some 100 µs on a local network. The timestamp of a message just stored is a bound too, and
// free.
//
// Steps of the local wall clock do not matter, since only differences of the monotonic clock are used. The monotonic
// clock stands still while a machine is suspended: see [Clock.Suspended].
type Clock struct {
	base   time.Time     // local, with monotonic reading
	best   [2]bound      // of the present half of Trust, and of the half before
	proved time.Duration // monotonic; the last proof
	looked time.Duration // how far the leader's clock is ahead of base plus monotonic, by the last look
	at     time.Time     // local, when it was answered
	known  bool          // there was a look
	last   uint64        // the stream's last sequence then
	leader string
}

// bound is the largest proven difference between the leader's clock and base plus monotonic, in a while.
type bound struct {
	since  time.Duration // monotonic
	offset time.Duration
	ok     bool
}

// Answer is what the leader of a stream said when it was asked.
type Answer struct {
	Time     time.Time // its clock when it answered
	Received time.Time // our clock when the answer arrived
	Leader   string    // its name; empty on a single server
	LastSeq  uint64    // the last sequence of the stream
}

// NewClock makes a clock that knows nothing yet.
func NewClock(local time.Time) *Clock { return &Clock{base: local} }

// Base is the local time at which the clock was made, with its monotonic reading.
func (c *Clock) Base() time.Time { return c.base }

// Looked is the local time of the last answer, if there was one.
func (c *Clock) Looked() (at time.Time, ok bool) { return c.at, c.known }

// Known reports whether the leader has answered.
func (c *Clock) Known() bool { return c.known }

// Leader is the name of the leader that answered last.
func (c *Clock) Leader() string { return c.leader }

// Look takes in an answer of the stream's leader.
func (c *Clock) Look(a Answer) {
	if a.Received.Before(c.at) {
		return // a later answer came first; this one would count as a new proof
	}
	c.at = a.Received
	if a.Leader != c.leader {
		c.leader, c.best = a.Leader, [2]bound{} // another clock
	}
	c.known, c.looked, c.last = true, c.Offset(At(a.Time), a.Received), a.LastSeq
	c.prove(c.looked, a.Received)
}

// Observe takes in the timestamp of a message that was just received. A message that was stored long ago proves
// nothing. A message that was there at the last look may prove too much: another leader may have stamped it, or this
// leader before its clock was put right.
func (c *Clock) Observe(sequence uint64, stored Time, received time.Time) {
	if offset := c.Offset(stored, received); c.known && sequence > c.last && offset > c.looked-tight {
		c.prove(offset, received)
	}
}

// Offset is how far the leader's clock is ahead of base plus monotonic, if it showed a time when ours showed local.
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

// Now is the time that the leader's clock shows at least when ours shows local. Without a fresh proof it is an
// estimate: good to plan by, but not to fire by.
func (c *Clock) Now(local time.Time) (now Time, fresh bool) {
	mono := local.Sub(c.base)
	offset := c.looked
	for _, b := range c.best {
		if b.ok && mono-b.since <= Trust && (!fresh || b.offset > offset) {
			offset, fresh = b.offset, true
		}
	}
	return At(c.base.Round(0).Add(mono + offset)), fresh
}

// Suspended reports whether wall and monotonic clock have come apart since the last look, as they do while a machine
// sleeps. Then the leader's time is not the time that we assume.
func (c *Clock) Suspended(local time.Time) bool {
	const much = time.Second
	apart := local.Round(0).Sub(c.at.Round(0)) - local.Sub(c.at)
	return c.known && apart.Abs() > much
}

// Age is how long ago the last proof was.
func (c *Clock) Age(local time.Time) time.Duration {
	if !c.known {
		return Trust
	}
	return local.Sub(c.base) - c.proved
}
