package broker

import (
	"sync/atomic"
	"time"

	"delaybroker/broker/layout"
	"delaybroker/broker/leader"
)

// countEvery is how old the count of a lane's messages may be while the lane is not being read. It costs one question
// to the leader of a lane that has 256 messages or more. When it was a minute, 256 of 10,000 messages were shown as
// all.
const countEvery = 5 * time.Second

// timersEvery is the same for the timers, which others remove.
const timersEvery = time.Minute

// offsetFor is for how long the difference of two clocks is worth showing after a look. An idle lane is not looked at,
// and even sound clocks come apart by seconds a day.
const offsetFor = 10 * time.Minute

// gauge holds the figures of a worker that others may read. The loop writes them once in a pass. Ages are kept as
// points in time, so that they are right while the loop sleeps or hangs, too.
type gauge struct {
	base time.Time // the clock's; does not change

	memory struct {
		messages, bytes, span, waiting atomic.Int64
		full                           atomic.Bool
	}
	stream struct {
		pending, read, bytes atomic.Uint64
		maxBytes             atomic.Int64
	}

	looked      atomic.Int64 // monotonic nanoseconds since base, plus 1, when the leader last told its time
	offset      atomic.Int64 // nanoseconds of its clock before base plus monotonic
	oldest      atomic.Int64 // its time at which the oldest message should have left; zero when there is none
	next        atomic.Int64 // its time at which the next message on the wheel is due; zero when there is none
	resumes     atomic.Int64 // its time at which reading goes on; zero while it does
	uncommitted atomic.Int64 // monotonic nanoseconds since base, plus 1, since when there is something to commit
}

// report is called by the loop at the end of a pass.
func (w *worker) report(local time.Time) {
	g, f, r := w.gauge, w.flights, w.reading
	g.memory.messages.Store(int64(f.count))
	g.memory.bytes.Store(int64(f.bytes))
	g.memory.span.Store(int64(r.cursor.Span()))
	g.memory.waiting.Store(int64(f.waiting()))
	g.memory.full.Store(w.full())
	g.stream.pending.Store(uint64(f.count) + r.behind())
	if w.lane.Kind == layout.Timers { // what has been read stays; one message is the cursor
		g.stream.pending.Store(max(uint64(f.count)+r.behind(), max(r.seen.Messages, 1)-1))
	}
	g.stream.read.Store(r.last.Sequence)
	g.stream.bytes.Store(r.seen.Bytes)
	g.stream.maxBytes.Store(r.seen.MaxBytes)

	now, _ := w.clock.Now(local)
	resumes, later := w.resumes()
	storeTime(&g.resumes, resumes, later && resumes.After(now))
	next, any := f.next()
	storeTime(&g.next, next, any)
	oldest, any := f.oldest()
	storeTime(&g.oldest, oldest, any)
	if at, ok := w.clock.Looked(); ok {
		g.looked.Store(int64(at.Sub(g.base)) + 1)
	}
	g.offset.Store(int64(w.clock.Offset(now, local)))
	g.uncommitted.Store(0)
	if since := w.commits.waiting(&r.cursor, local); !since.IsZero() {
		g.uncommitted.Store(int64(since.Sub(g.base)) + 1)
	}
}

// storeTime stores a time, or zero when there is none.
func storeTime(in *atomic.Int64, t leader.Time, ok bool) {
	if !ok {
		in.Store(0)
		return
	}
	in.Store(t.UnixNano())
}

// count asks how many messages the lane has when the last answer is old: while the lane is not being read, nothing else
// would tell. It returns how long until the next question.
func (w *worker) count(local time.Time) time.Duration {
	every := countEvery
	switch {
	case w.lane.Kind == layout.Timers && w.reading.seen.Messages > 1:
		every = timersEvery
	case w.hungry(local):
		return forever
	}
	if left := w.clock.counted.Add(every).Sub(local); left > 0 {
		return left
	}
	w.clock.counted = local
	w.look()
	return every
}

// fill writes what the loop reported last into a status, at the time local.
func (g *gauge) fill(l *LaneStatus, local time.Time) {
	l.Held, l.HeldBytes, l.Span = int(g.memory.messages.Load()), int(g.memory.bytes.Load()), int(g.memory.span.Load())
	l.Waiting, l.Full = int(g.memory.waiting.Load()), g.memory.full.Load()
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
	if l.ClockKnown = mono-time.Duration(looked-1) <= offsetFor; l.ClockKnown {
		l.ClockOffset = now.Stamp().Sub(local.Round(0))
	}
	if oldest := g.oldest.Load(); oldest != 0 {
		l.Overdue = max(0, now.Sub(leader.At(time.Unix(0, oldest))))
	}
}
