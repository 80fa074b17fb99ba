package stats

import (
	"sync"
	"time"

	"delaybroker/broker/leader"
)

// MaxClockAge is the maximum age of a reading of the leader's clock. A status does not show an older reading. The clock
// of an empty lane is not read, and even good clocks drift apart by seconds a day.
const MaxClockAge = 10 * time.Minute

// Report is the state of a lane's loop at the end of a pass, one iteration of the loop.
type Report struct {
	Memory
	WaitingMessages int // messages in memory that wait for a time or for the end of a closing pause
	NewerMessages   int // messages of a newer format

	Pending, Read, Arrived, Bytes uint64
	MaxBytes                      int64
	UnopenedEntries               int // entries of timers that are sealed with an unknown key

	ClockOffset time.Duration // the leader's time minus the sum of Gauge.base and the monotonic time since base
	ClockRead   time.Time     // local time of the last reading of the leader's clock; zero if there is none
	OldestDue   leader.Time   // earliest time at which a message in memory should leave; zero if there is none
	NextDue     leader.Time   // earliest time on the timing wheel; zero if the wheel is empty
	ResumesAt   leader.Time   // time until which reading is suspended; zero if it is not suspended

	UncommittedSince time.Time // local time since which a delivery or a move waits for its commit; zero if none waits
}

// Gauge has the newest report of a loop, for other goroutines.
type Gauge struct {
	base time.Time // a fixed local time, to which the loop's times relate

	mu     sync.Mutex // guards report
	report Report
}

// NewGauge returns a gauge of a loop whose times relate to base.
func NewGauge(base time.Time) *Gauge { return &Gauge{base: base} }

// Set stores a report.
func (g *Gauge) Set(r Report) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.report = r
}

// Fill writes the newest report into a status. Local is the present time.
func (g *Gauge) Fill(l *LaneStatus, local time.Time) {
	g.mu.Lock()
	r := g.report
	g.mu.Unlock()
	l.Memory, l.WaitingMessages = r.Memory, r.WaitingMessages
	l.NewerMessages, l.UnopenedEntries = r.NewerMessages, r.UnopenedEntries
	l.Pending, l.Read, l.Arrived, l.Bytes, l.MaxBytes = r.Pending, r.Read, r.Arrived, r.Bytes, r.MaxBytes
	l.ResumesAt, l.NextDue = r.ResumesAt.Stamp().UTC(), r.NextDue.Stamp().UTC()
	if !r.UncommittedSince.IsZero() {
		l.CommitAge = max(0, local.Sub(r.UncommittedSince))
	}
	if r.ClockRead.IsZero() {
		return
	}
	now := leader.At(g.base.Round(0).Add(local.Sub(g.base) + r.ClockOffset))
	if l.ClockKnown = local.Sub(r.ClockRead) <= MaxClockAge; l.ClockKnown {
		l.ClockOffset = now.Stamp().Sub(local.Round(0))
	}
	if !r.OldestDue.IsZero() {
		l.Overdue = max(0, now.Sub(r.OldestDue))
	}
}
