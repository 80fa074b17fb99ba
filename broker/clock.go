package broker

import (
	"time"

	"delaybroker/broker/lane"
)

const (
	// clockTrust is how long a proof of the leader's time is good to fire by. A wall clock that is being corrected runs up
	// to 500 ppm off the monotonic one: 50 µs in this time, which is less than a publish takes to be stored, so that
	// nothing is early by it; in half a minute it would be 15 ms.
	clockTrust = 100 * time.Millisecond
	// clockAhead is how long before a message is due the leader is asked for its time, if the last proof is too old.
	clockAhead = 50 * time.Millisecond
	// clockTight is how far a message's timestamp may lie behind the time that the last look foretells and still count as
	// a proof of the time: the message was stored just now.
	clockTight = time.Millisecond
)

// clock tells the time of one stream's leader. The leader's clock has stamped the messages, so only by that clock can a
// delivery be early. The time told is never later than is proven: when the leader's clock said ts in an answer received
// at r, it shows at least ts + (now − r) now. The best bound of this kind within clockTrust is the time; it lags by the
// fastest answer's way back, some 100 µs on a local network. The timestamp of a message just stored is a bound too, and
// free.
//
// Steps of the local wall clock do not matter, since only differences of the monotonic clock are used. The monotonic
// clock stands still while a machine is suspended: see suspended.
type clock struct {
	base   time.Time     // local, with monotonic reading
	best   [2]bound      // of the present half of clockTrust, and of the half before
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

func newClock(local time.Time) *clock { return &clock{base: local} }

// look takes in an answer of the stream's leader.
func (c *clock) look(s lane.Sample) {
	if s.Received.Before(c.at) {
		return // a later answer came first; this one would count as a new proof
	}
	c.at = s.Received
	if s.Leader != c.leader {
		c.leader, c.best = s.Leader, [2]bound{} // another clock
	}
	c.known, c.looked, c.last = true, c.offset(byLeader(s.ServerTime), s.Received), s.LastSeq
	c.prove(c.looked, s.Received)
}

// observe takes in the timestamp of a message that was just received. A message that was stored long ago proves
// nothing. A message that was there at the last look may prove too much: another leader may have stamped it, or this
// leader before its clock was put right.
func (c *clock) observe(sequence uint64, stored leaderTime, received time.Time) {
	if offset := c.offset(stored, received); c.known && sequence > c.last && offset > c.looked-clockTight {
		c.prove(offset, received)
	}
}

func (c *clock) offset(at leaderTime, received time.Time) time.Duration {
	return at.stamp.Sub(c.base.Round(0)) - received.Sub(c.base)
}

func (c *clock) prove(offset time.Duration, received time.Time) {
	mono := received.Sub(c.base)
	c.proved = mono
	if !c.best[0].ok || mono-c.best[0].since >= clockTrust/2 {
		c.best[1], c.best[0] = c.best[0], bound{since: mono}
	}
	if b := &c.best[0]; !b.ok || offset > b.offset {
		b.offset, b.ok = offset, true
	}
}

// now is the time that the leader's clock shows at least when ours shows local. Without a fresh proof it is an
// estimate: good to plan by, but not to fire by.
func (c *clock) now(local time.Time) (now leaderTime, fresh bool) {
	mono := local.Sub(c.base)
	offset := c.looked
	for _, b := range c.best {
		if b.ok && mono-b.since <= clockTrust && (!fresh || b.offset > offset) {
			offset, fresh = b.offset, true
		}
	}
	return byLeader(c.base.Round(0).Add(mono + offset)), fresh
}

// suspended reports whether wall and monotonic clock have come apart since the last look, as they do while a machine
// sleeps. Then the leader's time is not the time that we assume.
func (c *clock) suspended(local time.Time) bool {
	const much = time.Second
	apart := local.Round(0).Sub(c.at.Round(0)) - local.Sub(c.at)
	return c.known && apart.Abs() > much
}

// age is how long ago the last proof was.
func (c *clock) age(local time.Time) time.Duration {
	if !c.known {
		return clockTrust
	}
	return local.Sub(c.base) - c.proved
}

// leaderClock is the clock of a lane, and the looks that keep it proven. It belongs to the lane's loop.
type leaderClock struct {
	*clock
	looking bool      // a look is underway
	retry   time.Time // local; when the leader may be asked again after a look that failed
	counted time.Time // local; when the last look that counts messages began
}

func newLeaderClock(local time.Time) *leaderClock { return &leaderClock{clock: newClock(local)} }

// lookNow lets the next look come at once, although the last one failed.
func (c *leaderClock) lookNow() { c.retry = time.Time{} }
