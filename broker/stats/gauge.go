package stats

import (
	"sync/atomic"
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

	memory struct {
		messages, bytes, span, waiting, newer atomic.Int64
		full                                  atomic.Bool
	}
	stream struct {
		pending, read, bytes atomic.Uint64
		maxBytes, unopened   atomic.Int64
	}

	looked      atomic.Int64 // monotonic nanoseconds since base, plus 1, when the leader last told its time
	offset      atomic.Int64 // nanoseconds of its clock before base plus monotonic
	oldest      atomic.Int64 // its time at which the oldest message should have left; zero when there is none
	next        atomic.Int64 // its time at which the next message on the wheel is due; zero when there is none
	resumes     atomic.Int64 // its time at which reading goes on; zero while it does
	uncommitted atomic.Int64 // monotonic nanoseconds since base, plus 1, since when there is something to commit
}

// NewGauge makes a gauge of a loop whose clock began at base.
func NewGauge(base time.Time) *Gauge { return &Gauge{base: base} }

// Set takes in a report.
func (g *Gauge) Set(r Report) {
	g.memory.messages.Store(int64(r.Held))
	g.memory.bytes.Store(int64(r.HeldBytes))
	g.memory.span.Store(int64(r.Span))
	g.memory.waiting.Store(int64(r.Waiting))
	g.memory.newer.Store(int64(r.Newer))
	g.memory.full.Store(r.Full)
	g.stream.pending.Store(r.Pending)
	g.stream.read.Store(r.Read)
	g.stream.bytes.Store(r.Bytes)
	g.stream.maxBytes.Store(r.MaxBytes)
	g.stream.unopened.Store(int64(r.Unopened))
	storeTime(&g.resumes, r.Resumes)
	storeTime(&g.next, r.Next)
	storeTime(&g.oldest, r.Oldest)
	if !r.Looked.IsZero() {
		g.looked.Store(int64(r.Looked.Sub(g.base)) + 1)
	}
	g.offset.Store(int64(r.Offset))
	g.uncommitted.Store(0)
	if !r.Uncommitted.IsZero() {
		g.uncommitted.Store(int64(r.Uncommitted.Sub(g.base)) + 1)
	}
}

// storeTime stores a time, or zero when there is none.
func storeTime(in *atomic.Int64, t leader.Time) {
	if t.IsZero() {
		in.Store(0)
		return
	}
	in.Store(t.UnixNano())
}

// Fill writes what the loop reported last into a status, at the time local.
func (g *Gauge) Fill(l *LaneStatus, local time.Time) {
	l.Held, l.HeldBytes, l.Span = int(g.memory.messages.Load()), int(g.memory.bytes.Load()), int(g.memory.span.Load())
	l.Waiting, l.Full = int(g.memory.waiting.Load()), g.memory.full.Load()
	l.Unopened, l.Newer = int(g.stream.unopened.Load()), int(g.memory.newer.Load())
	l.Pending, l.Read = g.stream.pending.Load(), g.stream.read.Load()
	l.Bytes, l.MaxBytes = g.stream.bytes.Load(), g.stream.maxBytes.Load()
	if resumes := g.resumes.Load(); resumes != 0 {
		l.ResumesAt = time.Unix(0, resumes).UTC()
	}
	mono := local.Sub(g.base)
	if since := g.uncommitted.Load(); since != 0 {
		l.CommitAge = max(0, mono-time.Duration(since-1))
	}
	if next := g.next.Load(); next != 0 {
		l.NextDue = time.Unix(0, next).UTC()
	}
	looked := g.looked.Load()
	if looked == 0 {
		return
	}
	now := leader.At(g.base.Round(0).Add(mono + time.Duration(g.offset.Load())))
	if l.ClockKnown = mono-time.Duration(looked-1) <= OffsetFor; l.ClockKnown {
		l.ClockOffset = now.Stamp().Sub(local.Round(0))
	}
	if oldest := g.oldest.Load(); oldest != 0 {
		l.Overdue = max(0, now.Sub(leader.At(time.Unix(0, oldest))))
	}
}
