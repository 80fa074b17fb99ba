package stats

import (
	"sync"
	"time"

	"delaybroker/broker/leader"
)

// OffsetFor is for how long the difference of two clocks is worth showing after a look. An idle lane is not looked at,
// and even sound clocks come apart by seconds a day.
const OffsetFor = 10 * time.Minute

// Report is what the loop of a lane says of itself at the end of a pass.
type Report struct {
	Memory
	Waiting int
	Newer   int // messages of a newer format

	Pending, Read, Bytes uint64
	MaxBytes             int64
	Unopened             int // entries of timers that are sealed with a key that is not known

	Offset  time.Duration // of the leader's clock before the local one
	Looked  time.Time     // local; when the leader last told its time; zero when it never has
	Oldest  leader.Time   // when the oldest message should have left; zero when there is none
	Next    leader.Time   // when the next message on the wheel is due; zero when there is none
	Resumes leader.Time   // when reading goes on; zero while it does

	Uncommitted time.Time // local; since when there is something to commit; zero when there is nothing
}

// Gauge holds the last report of a loop, for others to read. Ages are kept as points in time, so that they are right
// while the loop sleeps or hangs, too.
type Gauge struct {
	base time.Time // local; does not change

	mu   sync.Mutex // guards last, and is held only to copy it
	last Report
}

// NewGauge makes a gauge of a loop whose clock began at base.
func NewGauge(base time.Time) *Gauge { return &Gauge{base: base} }

// Set takes in a report.
func (g *Gauge) Set(r Report) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.last = r
}

// Fill writes the last report into a status, at the time local.
func (g *Gauge) Fill(l *LaneStatus, local time.Time) {
	g.mu.Lock()
	r := g.last
	g.mu.Unlock()
	l.Memory, l.Waiting, l.Newer, l.Unopened = r.Memory, r.Waiting, r.Newer, r.Unopened
	l.Pending, l.Read, l.Bytes, l.MaxBytes = r.Pending, r.Read, r.Bytes, r.MaxBytes
	l.ResumesAt, l.NextDue = r.Resumes.Stamp().UTC(), r.Next.Stamp().UTC()
	if !r.Uncommitted.IsZero() {
		l.CommitAge = max(0, local.Sub(r.Uncommitted))
	}
	if r.Looked.IsZero() {
		return
	}
	now := leader.At(g.base.Round(0).Add(local.Sub(g.base) + r.Offset))
	if l.ClockKnown = local.Sub(r.Looked) <= OffsetFor; l.ClockKnown {
		l.ClockOffset = now.Stamp().Sub(local.Round(0))
	}
	if !r.Oldest.IsZero() {
		l.Overdue = max(0, now.Sub(r.Oldest))
	}
}
