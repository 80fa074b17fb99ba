package broker

import (
	"time"

	"delaybroker/levels/lane"
)

const (
	// sampleFresh is how long a look at the server's clock is trusted to fire by. At 50 ppm of drift between two
	// clocks, 30 s are 1.5 ms.
	sampleFresh = 30 * time.Second
	// sampleEvery is how often a lane with something due looks.
	sampleEvery = 10 * time.Second
	// stepSize is the difference between wall and monotonic clock that betrays a suspended machine.
	stepSize = 50 * time.Millisecond
)

// clock tells the time of one stream's leader, which stamped the messages and is therefore the only one by which a
// message can be early. It never says more than is proven: when the leader's clock said ts in an answer received at r,
// it says at least ts + (now − r) now. The best such bound of the last half minute is the time; it lags by the fastest
// answer's way back, some 100 µs on a local network. A message just stored is such an answer too.
//
// Steps of the local wall clock do not matter, since only differences of the monotonic clock enter.
type clock struct {
	base    time.Time // local, with monotonic reading
	best    [2]bound  // of this and of the last quarter minute
	sampled time.Duration
	known   bool
	leader  string
	skew    time.Duration // wall less monotonic, since base
}

// bound is the largest proven difference between the leader's clock and base plus monotonic.
type bound struct {
	since  time.Duration // monotonic
	offset time.Duration
	ok     bool
}

func newClock(local time.Time) *clock { return &clock{base: local} }

// sample takes in an answer of the stream's leader.
func (c *clock) sample(s lane.Sample) {
	if s.Leader != c.leader {
		c.leader, c.best = s.Leader, [2]bound{} // another clock
	}
	c.sampled, c.known = s.Received.Sub(c.base), true
	c.skew = wallSkew(c.base, s.Received)
	c.observe(s.ServerTime, s.Received)
}

// observe takes in that the leader's clock has reached a time. A message's timestamp proves that much, but says nothing
// about how long ago it was, so it does not make the clock fresh.
func (c *clock) observe(server, received time.Time) {
	mono := received.Sub(c.base)
	if mono-c.best[0].since > sampleFresh/2 || !c.best[0].ok {
		c.best[1], c.best[0] = c.best[0], bound{since: mono}
	}
	offset := server.Sub(c.base.Round(0)) - mono
	if b := &c.best[0]; !b.ok || offset > b.offset {
		b.offset, b.ok = offset, true
	}
}

// now is the leader's time, at least; local is ours. Fresh is false when the last look is too old to fire by.
func (c *clock) now(local time.Time) (server time.Time, fresh bool) {
	mono := local.Sub(c.base)
	offset, ok := c.best[0].offset, c.best[0].ok
	if b := c.best[1]; b.ok && (!ok || b.offset > offset) && mono-b.since < sampleFresh {
		offset, ok = b.offset, true
	}
	if !ok {
		return local.Round(0), false
	}
	stepped := wallSkew(c.base, local) - c.skew
	fresh = c.known && mono-c.sampled <= sampleFresh && stepped.Abs() < stepSize
	return c.base.Round(0).Add(mono + offset), fresh
}

// age is how long ago the leader's clock was looked at.
func (c *clock) age(local time.Time) time.Duration {
	if !c.known {
		return sampleFresh
	}
	return local.Sub(c.base) - c.sampled
}

func wallSkew(base, local time.Time) time.Duration {
	return local.Round(0).Sub(base.Round(0)) - local.Sub(base)
}
