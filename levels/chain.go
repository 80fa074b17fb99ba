package levels

import "time"

// Next returns the next level for a message: the longest level that is not longer than the remaining time. If remaining
// is below the [Ladder.Horizon], ok is false, and the message waits on the wheel.
//
// A broker calls Next for every message at every hop, so Next does not allocate. If messages leave a level before its
// end, by a lookahead, the caller should add a part of the lookahead to remaining, but not the whole lookahead. See "A
// millisecond short" in the package documentation.
func (l Ladder) Next(remaining time.Duration) (next Level, ok bool) {
	level, ok := l.LongestFit(remaining)
	if !ok || remaining < l.Horizon() {
		return Level{}, false
	}
	return level, true
}

// Chain returns the levels through which a message with the delay d passes, chosen by [Ladder.Next], and the rest of
// the delay, which the message spends on the wheel. The delays of the hops and the rest add up to exactly d. If d is
// not negative, the rest is not negative and shorter than the Horizon.
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
