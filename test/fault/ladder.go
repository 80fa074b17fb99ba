//go:build linux

package fault

import (
	"strings"
	"time"
)

type request struct {
	subject string // the subject's part before the target; empty for a request with a time
	delay   time.Duration
}

// ladder has the levels of a run's brokers, and the requests of its publishers: delays on the wheel, on a level, and
// through one or more levels.
type ladder struct {
	levels   string // as in DELAY_LEVELS
	requests []request
}

var (
	// shortLadder is for short runs: a message of 7.5 s passes the two-second level three times.
	shortLadder = ladder{"1s,2s", []request{
		{"delayin.50ms", 50 * time.Millisecond},
		{"delayin.700ms", 700 * time.Millisecond},
		{"delay.1s", time.Second},
		{"delayin.1500ms", 1500 * time.Millisecond},
		{"delay.2s", 2 * time.Second},
		{"", 2500 * time.Millisecond},
		{"delay.3s", 3 * time.Second}, // not a level of the ladder: the intake accepts it
		{"delayin.4500ms", 4500 * time.Millisecond},
		{"delayin.7500ms", 7500 * time.Millisecond},
	}}
	// deepLadder has only long delays. If a reader skips messages long before they are due, they are lost, and not only
	// late.
	deepLadder = ladder{"1s,5s,10s", []request{
		{"delay.5s", 5 * time.Second},
		{"delay.10s", 10 * time.Second},
		{"delayin.10s", 10 * time.Second},
	}}
	// quietLadder has a level that only the messages of one fault pass.
	quietLadder = ladder{"1s," + quietLevel, []request{
		{"delayin.700ms", 700 * time.Millisecond},
		{"delay.1s", time.Second},
		{"delayin.1200ms", 1200 * time.Millisecond},
	}}
	// wideLadder has levels with large gaps between them. A reader may stop for seconds without making a message of the
	// lane late.
	wideLadder = ladder{"1s,5s,10s", []request{
		{"delayin.700ms", 700 * time.Millisecond},
		{"delay.1s", time.Second},
		{"delayin.3s", 3 * time.Second},
		{"delay.5s", 5 * time.Second},
		{"", 6 * time.Second},
		{"delay.10s", 10 * time.Second},
		{"delayin.12s", 12 * time.Second},
	}}
)

// pushLadder has a separate level for messages to core subscribers.
var pushLadder = ladder{shortLadder.levels + "," + pushLevel, shortLadder.requests}

// direct reports whether a request is stored in a level directly, and not in the intake.
func (l ladder) direct(r request) bool {
	level, ok := strings.CutPrefix(r.subject, "delay.")
	if !ok {
		return false
	}
	for name := range strings.SplitSeq(l.levels, ",") {
		if name == level {
			return true
		}
	}
	return false
}

func (l ladder) longest() time.Duration {
	longest := time.Duration(0)
	for _, r := range l.requests {
		longest = max(longest, r.delay)
	}
	return longest
}
