//go:build linux

package fault

import (
	"strings"
	"time"
)

// request is one way to ask for a delay.
type request struct {
	subject string // before the target; empty is a time
	delay   time.Duration
}

// ladder is the levels of a run's brokers, and the delays that its publishers ask for: on the wheel, on a level,
// through a level once, and more than once.
type ladder struct {
	levels   string // as in DELAY_LEVELS
	requests []request
}

var (
	// shortLadder makes short runs: a message of 7.5 s passes the level of two seconds three times.
	shortLadder = ladder{"1s,2s", []request{
		{"delayin.50ms", 50 * time.Millisecond},
		{"delayin.700ms", 700 * time.Millisecond},
		{"delay.1s", time.Second},
		{"delayin.1500ms", 1500 * time.Millisecond},
		{"delay.2s", 2 * time.Second},
		{"", 2500 * time.Millisecond},
		{"delay.3s", 3 * time.Second}, // no level of the ladder: the intake's
		{"delayin.4500ms", 4500 * time.Millisecond},
		{"delayin.7500ms", 7500 * time.Millisecond},
	}}
	// deepLadder fills lanes that stand still for long, and so has gaps that show as loss only.
	deepLadder = ladder{"1s,5s,10s", []request{
		{"delay.5s", 5 * time.Second},
		{"delay.10s", 10 * time.Second},
		{"delayin.10s", 10 * time.Second},
	}}
	// quietLadder has a level that only the messages of a fault go through.
	quietLadder = ladder{"1s," + quietLevel, []request{
		{"delayin.700ms", 700 * time.Millisecond},
		{"delay.1s", time.Second},
		{"delayin.1200ms", 1200 * time.Millisecond},
	}}
	// wideLadder has levels so far apart that a lane may stand still for seconds before anything in it is due: a gap in
	// what is read does not show as lateness.
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

// pushLadder has a level of its own for messages to core subscribers.
var pushLadder = ladder{shortLadder.levels + "," + pushLevel, shortLadder.requests}

// direct reports whether a request goes into the stream of a level, and not through the intake.
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

// longest is the longest of the delays.
func (l ladder) longest() time.Duration {
	most := time.Duration(0)
	for _, r := range l.requests {
		most = max(most, r.delay)
	}
	return most
}
