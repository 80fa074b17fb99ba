package levels

import "time"

// Next returns the next level for a message: the longest level that is not longer than the remaining time. If remaining
// is below the [Ladder.Horizon], ok is false, and the message waits on the wheel.
//
// Next does not depend on the message's past. The message carries its due time, so another ladder, or another broker,
// may continue the chain at any hop.
//
// Next does not allocate, because it is called for every message at every hop. A caller that lets messages leave a
// level early by some lookahead should add a part of the lookahead to remaining, but not the whole lookahead: see the
// package comment, "A millisecond short".
func (l Ladder) Next(remaining time.Duration) (next Level, ok bool) {
	level, ok := l.Longest(remaining)
	if !ok || remaining < l.Horizon() {
		return Level{}, false
	}
	return level, true
}

// Chain returns the levels that [Ladder.Next] chooses for a delay d, and the rest, which is spent on the wheel. The
// delays of the hops and the rest add up to exactly d. For d ≥ 0 the rest is in [0, Horizon).
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
