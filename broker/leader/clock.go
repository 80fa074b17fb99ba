package leader

import "time"

const (
	// Trust is the maximum age of a proof (see Clock) by which the broker may decide that a message is due. While NTP
	// corrects the leader's clock, that clock may run up to 500 ppm slower than the local monotonic clock: 50 µs in Trust.
	// The server takes more than 50 µs to store a publish, so no delivery is early.
	Trust = 100 * time.Millisecond
	// A message's timestamp is a proof only if the message is younger than freshness. Its age is computed with
	// answerOffset.
	freshness = time.Millisecond
)

// Clock estimates the time of one stream's leader. If an answer that was received at the local time r has the leader's
// time ts, then at the local time now the leader's clock shows at least ts + (now − r). Such an answer is a proof of
// this lower bound. The timestamp of a message that was just stored is also a proof, without a request. The estimate is
// the largest bound of the proofs within Trust, so it lags by the travel time of the fastest answer, about 100 µs on a
// local network.
//
// Steps of the local wall clock do not change the estimate, which uses only differences of the monotonic clock. The
// monotonic clock stops while a machine is suspended: see [Clock.Suspended].
//
// A Clock is not safe for concurrent use.
type Clock struct {
	base         time.Time     // local, with monotonic reading
	bounds       [2]bound      // of the current interval of Trust/2, and of the previous one
	provenAt     time.Duration // when the last proof was received, monotonic since base
	answerOffset time.Duration // the Offset according to the last answer
	answeredAt   time.Time     // local; when the last answer was received
	answered     bool          // the leader has answered at least once
	lastSeq      uint64        // Answer.LastSeq of the last answer
	leader       string        // Answer.Leader of the last answer
}

// bound is the largest proven Offset in an interval of Trust/2.
type bound struct {
	start  time.Duration // of the interval, monotonic since base
	offset time.Duration
	ok     bool
}

// Reading is an answer of a stream's leader to a request for the stream's state.
type Reading struct {
	Time     time.Time // when the leader answered, by its clock
	Received time.Time // when the answer arrived, by the local clock
	Leader   string    // name of the leader's server
	LastSeq  uint64    // the highest sequence in the stream at that time
}

// NewClock returns a clock that has no answer yet. Local is the local time now, with a monotonic reading.
func NewClock(local time.Time) *Clock { return &Clock{base: local} }

// Base returns the local time with which NewClock was called.
func (c *Clock) Base() time.Time { return c.base }

// LastAnswer returns the local time at which the last answer was received. If there was no answer, ok is false.
func (c *Clock) LastAnswer() (at time.Time, ok bool) { return c.answeredAt, c.answered }

// HasAnswer reports whether the leader has answered.
func (c *Clock) HasAnswer() bool { return c.answered }

// Leader returns the name of the server whose answer was recorded last.
func (c *Clock) Leader() string { return c.leader }

// Record records an answer of the stream's leader. It ignores an answer that was received before the last recorded
// answer.
func (c *Clock) Record(a Reading) {
	if a.Received.Before(c.answeredAt) {
		return // an older answer must not count as a new proof
	}
	c.answeredAt = a.Received
	if a.Leader != c.leader {
		c.leader, c.bounds = a.Leader, [2]bound{} // a new leader has another clock
	}
	c.answered, c.answerOffset, c.lastSeq = true, c.Offset(At(a.Time), a.Received), a.LastSeq
	c.prove(c.answerOffset, a.Received)
}

// Observe records the timestamp of a message that was just received. Before the first answer, it ignores all messages.
// It ignores a message that is older than freshness, because its bound would be too low. It also ignores a message that
// was stored before the last answer: another leader, or this leader before a correction of its clock, may have stamped
// that message with a time ahead of the leader's present time.
func (c *Clock) Observe(sequence uint64, stored Time, received time.Time) {
	if offset := c.Offset(stored, received); c.answered && sequence > c.lastSeq && offset > c.answerOffset-freshness {
		c.prove(offset, received)
	}
}

// Offset returns shown, a time of the leader's clock, minus local, a time of the local clock. It measures local by the
// monotonic clock from base, so steps of the wall clock do not matter.
func (c *Clock) Offset(shown Time, local time.Time) time.Duration {
	return shown.stamp.Sub(c.base.Round(0)) - local.Sub(c.base)
}

func (c *Clock) prove(offset time.Duration, received time.Time) {
	mono := received.Sub(c.base)
	c.provenAt = mono
	if !c.bounds[0].ok || mono-c.bounds[0].start >= Trust/2 {
		c.bounds[1], c.bounds[0] = c.bounds[0], bound{start: mono}
	}
	if b := &c.bounds[0]; !b.ok || offset > b.offset {
		b.offset, b.ok = offset, true
	}
}

// Now returns a lower bound of the leader's time when the local clock shows local. If proven is false, there is no
// proof within Trust. Then now is only an estimate, by which the caller may plan, but not decide that a message is due.
func (c *Clock) Now(local time.Time) (now Time, proven bool) {
	mono := local.Sub(c.base)
	offset := c.answerOffset
	for _, b := range c.bounds {
		if b.ok && mono-b.start <= Trust && (!proven || b.offset > offset) {
			offset, proven = b.offset, true
		}
	}
	return At(c.base.Round(0).Add(mono + offset)), proven
}

// Suspended reports whether the wall clock and the monotonic clock have diverged by more than a second since the last
// answer: the machine was suspended, or the wall clock was set. After a suspension, the estimate of the leader's time
// is wrong.
func (c *Clock) Suspended(local time.Time) bool {
	const tolerance = time.Second
	drift := local.Round(0).Sub(c.answeredAt.Round(0)) - local.Sub(c.answeredAt)
	return c.answered && drift.Abs() > tolerance
}

// Age returns the time since the last proof. Before the first answer, it returns Trust.
func (c *Clock) Age(local time.Time) time.Duration {
	if !c.answered {
		return Trust
	}
	return local.Sub(c.base) - c.provenAt
}
