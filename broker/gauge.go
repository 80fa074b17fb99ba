package broker

import (
	"sync/atomic"
	"time"
)

// countEvery is how old the knowledge of what a lane holds may be when the lane is not being read, and the price is one
// question to the leader of a lane that has 256 messages or more. A minute showed 256 of 10,000 as all there are.
const countEvery = 5 * time.Second

// offsetFor is for how long the difference of two clocks is worth showing after a look. An idle lane is not looked at, and
// even sound clocks come apart by seconds a day.
const offsetFor = 10 * time.Minute

// gauge is what a worker's loop lets others read: written once in a pass, read when somebody asks. What passes with time
// is kept as a point in time, so that it is right as well while the loop sleeps, or hangs.
type gauge struct {
	base time.Time // the clock's; does not change

	held, heldBytes, span, waiting atomic.Int64
	full                           atomic.Bool
	pending, bytes, read           atomic.Uint64
	maxBytes                       atomic.Int64

	looked      atomic.Int64 // monotonic nanoseconds since base, plus 1, when the leader said its time last
	offset      atomic.Int64 // nanoseconds of its clock before base plus monotonic
	oldest      atomic.Int64 // its time at which the oldest should have left; zero when nothing is overdue
	next        atomic.Int64 // its time at which the wheel has something; zero for never
	resumes     atomic.Int64 // its time at which reading goes on; zero while it does
	uncommitted atomic.Int64 // monotonic nanoseconds since base, plus 1, since when there is something to commit
}

// report is called by the loop at the end of a pass.
func (w *worker) report(local time.Time) {
	g := w.gauge
	g.held.Store(int64(w.held))
	g.heldBytes.Store(int64(w.heldBytes))
	g.span.Store(int64(w.cursor.Span()))
	g.waiting.Store(int64(w.wheel.Len()))
	g.full.Store(w.full())
	g.pending.Store(w.pending())
	g.read.Store(w.last.Sequence)
	g.bytes.Store(w.seen.Bytes)
	g.maxBytes.Store(w.seen.MaxBytes)

	now, _ := w.clock.now(local)
	g.resumes.Store(0)
	if resume, later := w.resumeReading(); later && resume.After(now) {
		g.resumes.Store(resume.UnixNano())
	}
	if w.clock.known {
		g.looked.Store(int64(w.clock.at.Sub(g.base)) + 1)
	}
	g.offset.Store(int64(w.clock.offset(now, local)))
	if next, ok := w.wheel.Next(); !ok {
		g.next.Store(0)
	} else if !w.undated { // otherwise what is first was put there for want of the time
		g.next.Store(next.UnixNano())
	}
	g.oldest.Store(w.oldest(g.next.Load()))

	c := &w.commit
	if w.cursor.Arrived() <= c.done && w.cursor.Ahead() == 0 {
		c.since = time.Time{}
		g.uncommitted.Store(0)
		return
	}
	if c.since.IsZero() {
		c.since = local
	}
	g.uncommitted.Store(int64(c.since.Sub(g.base)) + 1)
}

// oldest is when the oldest message should have left, in nanoseconds: of those that something is done about, or of those
// on the wheel, whose first is given. One that is to be moved is on the wheel for the lookahead before that. So one that
// is to be delivered may be overdue by that much without being said to be, and none is said to be that is not.
func (w *worker) oldest(onWheel int64) int64 {
	if onWheel != 0 {
		onWheel += int64(lookahead)
	}
	dated, ok := w.late.Next()
	if ok && (onWheel == 0 || dated.UnixNano() < onWheel) {
		return dated.UnixNano()
	}
	return onWheel
}

// pending is how many messages of the lane have not arrived elsewhere: those in memory, and those behind the last one
// read. A lane that is being read has none behind; of one that holds all it may, we know what was there when its stream
// was last looked at. Sequences without a message, of which a crash leaves some behind the cursor, count until they are
// read past, though never more than the stream has messages.
func (w *worker) pending() uint64 {
	behind := w.last.Behind
	if w.seen.LastSeq > w.last.Sequence+behind {
		behind = min(w.seen.LastSeq-w.last.Sequence, w.seen.Messages)
	}
	return uint64(w.held) + behind
}

// count asks how many messages there are when what is known is old: while the lane is not being read, nothing else would
// tell. It returns how long that will do.
func (w *worker) count(local time.Time) time.Duration {
	if w.hungry(local) {
		return forever
	}
	if left := w.counted.Add(countEvery).Sub(local); left > 0 {
		return left
	}
	w.counted = local
	w.look()
	return countEvery
}

// fill says what the loop knew last, at the time local.
func (g *gauge) fill(l *LaneStatus, local time.Time) {
	l.Held, l.HeldBytes, l.Span = int(g.held.Load()), int(g.heldBytes.Load()), int(g.span.Load())
	l.Waiting, l.Full = int(g.waiting.Load()), g.full.Load()
	l.Pending, l.Bytes, l.MaxBytes, l.Read = g.pending.Load(), g.bytes.Load(), g.maxBytes.Load(), g.read.Load()
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
	now := g.base.Round(0).Add(mono + time.Duration(g.offset.Load()))
	if l.ClockKnown = mono-time.Duration(looked-1) <= offsetFor; l.ClockKnown {
		l.ClockOffset = now.Sub(local.Round(0))
	}
	if oldest := g.oldest.Load(); oldest != 0 {
		l.Overdue = max(0, now.Sub(time.Unix(0, oldest)))
	}
}
