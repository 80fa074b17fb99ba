package engine

import "time"

const (
	// The timers' lane yields while at least burstFirings firings are in progress in this process.
	burstFirings = 4096
	// maxYield is the maximum time for which the lane yields in one burst. A timer that a client sets during a burst may
	// be late by up to maxYield, because its entry is read late.
	maxYield = 500 * time.Millisecond
	// yieldPoll is the interval at which a lane that yields checks whether the burst is over.
	yieldPoll = 10 * time.Millisecond
)

// yield decides when the timers' lane reads nothing, so that other lanes can send. If thousands of timers are due at
// the same time, the stream gets an entry for each firing. Reading such an entry costs as much as publishing it, and no
// message waits for the read. So the lane reads these entries after the broker has sent the messages. "delaybroker
// bench rounds" measures the difference.
type yield struct {
	burstStart time.Time // local; zero without a burst
}

// active reports whether the lane yields at a local time, if so many firings are in progress in this process. After
// maxYield, the lane does not yield again before the burst is over.
func (y *yield) active(firings int, local time.Time) bool {
	switch {
	case firings < burstFirings:
		y.burstStart = time.Time{}
		return false
	case y.burstStart.IsZero():
		y.burstStart = local
	}
	return local.Sub(y.burstStart) < maxYield
}
