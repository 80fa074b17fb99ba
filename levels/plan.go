package levels

import "time"

// Next returns the level to which a message goes that has this much time left: the longest one that is not longer. It
// is false when remaining is below the [Ladder.Horizon], or negative: the message waits on the wheel.
//
// Next does not depend on the message's past. Its due time travels with it, so a chain may go on with another ladder,
// or another broker, at any hop.
//
// Next does not allocate; it is called for every message at every hop. A caller that lets messages leave a level early
// by some lookahead should add a part of it to remaining, not all: see the package comment, "A millisecond short".
func (l Ladder) Next(remaining time.Duration) (Level, bool) {
	level, ok := l.Longest(remaining)
	if !ok || remaining < l.Horizon() {
		return Level{}, false
	}
	return level, true
}

// Chain returns the levels that [Ladder.Next] chooses from d down to the wheel, and the rest that waits there. The
// delays of the hops and the rest add up to d exactly; for d ≥ 0 the rest is in [0, Horizon).
func (l Ladder) Chain(d time.Duration) (hops []Level, rest time.Duration) {
	for {
		level, ok := l.Next(d)
		if !ok {
			return hops, d
		}
		hops = append(hops, level)
		d -= level.Delay
	}
}
