package engine

import "time"

const (
	// burstFirings is the number of firings underway in this process from which on the timers' lane yields.
	burstFirings = 4096
	// maxYield is the maximum time for which the lane yields in one burst. A timer that a client sets during a burst
	// may be late by up to maxYield.
	maxYield = 500 * time.Millisecond
	// yieldPoll is the interval at which a lane that yields checks whether the burst is over.
	yieldPoll = 10 * time.Millisecond
)

// yield decides when the timers' lane yields. If thousands of timers are due at the same time, the stream has an entry
// for each firing. Reading an entry costs the broker as much as publishing it, and no message waits for that read. So
// the lane reads these entries after the broker has sent the messages ("delaybroker bench rounds" measures the
// difference).
type yield struct {
	since time.Time // local; when the burst began; zero without a burst
}

// on reports whether the lane yields at a local time, while a number of firings is underway. After maxYield, the lane
// does not yield again before the burst is over.
func (y *yield) on(firings int, local time.Time) bool {
	switch {
	case firings < burstFirings:
		y.since = time.Time{}
		return false
	case y.since.IsZero():
		y.since = local
	}
	return local.Sub(y.since) < maxYield
}
