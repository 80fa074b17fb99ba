package role

import (
	"context"
	"sync/atomic"
	"time"

	"delaybroker/broker/lane"
	"delaybroker/broker/leader"
	"delaybroker/broker/message"
	"delaybroker/broker/timer/entry"
)

const (
	// sweepLate is the time by which a timer must be overdue for a pass to return it: its lane had that time to fire it.
	sweepLate = time.Minute
	// The next pass begins sweepShare times the duration of a pass after its end, so that passes take a hundredth of the
	// time, and within these bounds.
	sweepShare            = 100
	sweepLeast, sweepMost = time.Minute, time.Hour
	sweepBatchSize        = 256
)

// Sweep schedules the passes through the timers' stream. It belongs to the loop of its lane.
type Sweep struct {
	next    time.Time // local; zero before the first
	running bool
	// earliest is the first due time of the timers that the last pass has left, and of those that were read since: before
	// it, a pass would find nothing. It is zero if there is no such timer.
	earliest leader.Time
}

// Left notes that a timer is due at a time, or that an entry should be gone since then. Zero is no time.
func (s *Sweep) Left(due time.Time) {
	if due.IsZero() {
		return
	}
	if s.earliest.IsZero() || leader.At(due).Before(s.earliest) {
		s.earliest = leader.At(due)
	}
}

// Wait returns the time until the next pass. The first pass comes when the lane is taken over, the next ones as often
// as they cost little. Ok is false while no pass is scheduled: an entry must be read first, or a pass must end. A
// marker may be lost with its level, or by a power cut; the timer's own entry is the truth.
func (s *Sweep) Wait(now leader.Time, local time.Time, empty bool) (wait time.Duration, ok bool) {
	switch {
	case s.running:
		return 0, false
	case s.next.IsZero(): // the first
		if empty {
			return 0, false
		}
	case s.earliest.IsZero():
		return 0, false // the last pass left no timer, and none has been read since
	}
	wait = s.next.Sub(local)
	if !s.earliest.IsZero() && !s.next.IsZero() {
		wait = max(wait, s.earliest.Add(sweepLate).Sub(now))
	}
	return wait, true
}

// Begin begins a pass, which looks for timers that were due before the returned time.
func (s *Sweep) Begin(now leader.Time) (before time.Time) {
	s.running, s.earliest = true, leader.Time{}
	return now.Add(-sweepLate).Stamp()
}

// End notes the end of a pass.
func (s *Sweep) End(p Pass, local time.Time) {
	s.running, s.next = false, local.Add(min(max(sweepLeast, sweepShare*p.took), sweepMost))
	if p.Err != nil {
		s.next = local.Add(sweepLeast)
		s.Left(time.Time{}.Add(1))
	}
	s.Left(p.left)
}

// Pass is the result of a pass.
type Pass struct {
	Err  error
	left time.Time // the first due time of the timers that were not late; zero for none
	took time.Duration

	seals seals
}

// Batch holds the timers that a pass has found. The pass continues when all of them have ended.
type Batch struct {
	Found []Overdue
	left  atomic.Int64
	done  chan struct{} // closed when all have ended
}

func newBatch() *Batch { return &Batch{done: make(chan struct{})} }

func (b *Batch) ended() {
	if b.left.Add(-1) == 0 {
		close(b.done)
	}
}

// Overdue is a timer that its lane has not fired, or an outcome that has been kept long enough.
type Overdue struct {
	Alarm   *Alarm
	Request message.Request
}

// Pass goes through the stream once, and hands over the timers that were due before a time, in batches. After each
// batch it waits until its alarms have ended (Alarm.End), or ctx.
func (s *Stream) Pass(ctx context.Context, before time.Time, pick func(*Batch)) (end Pass) {
	start, waited := time.Now(), time.Duration(0) // waited is the time spent on batches, which costs nothing
	scan := s.Scan
	scan.Stream, scan.For, scan.HeadersOnly = s.Name(), "sweep", true
	scan.Filters = []string{s.Policy.Names.TimerFilter()}
	b := newBatch()
	for m, err := range scan.All(ctx) {
		if err != nil {
			end.Err = err
			break
		}
		found, since := s.overdue(m, b)
		began := time.Now()
		done, again := end.seals.judge(ctx, s, m, before)
		waited += time.Since(began)
		if again {
			end.leave(m.At)
		}
		if done {
			continue
		}
		switch {
		case since.IsZero():
		case !since.After(before):
			b.Found = append(b.Found, found)
		default:
			end.leave(since)
		}
		if len(b.Found) == sweepBatchSize {
			began := time.Now()
			b.handOver(ctx, pick)
			waited += time.Since(began)
			b = newBatch()
		}
	}
	end.took = time.Since(start) - waited
	if end.Err == nil && end.seals.err == nil {
		end.seals.err = s.resealCursor(ctx)
	}
	b.handOver(ctx, pick)
	return end
}

// leave notes a time that a later pass must look at.
func (p *Pass) leave(since time.Time) {
	if p.left.IsZero() || since.Before(p.left) {
		p.left = since
	}
}

// handOver passes a batch to pick, and waits until its timers have ended.
func (b *Batch) handOver(ctx context.Context, pick func(*Batch)) {
	if len(b.Found) == 0 {
		return
	}
	b.left.Store(int64(len(b.Found)))
	pick(b)
	select {
	case <-b.done:
	case <-ctx.Done():
	}
}

// overdue parses the header of an entry, and returns since when the entry should be gone; zero if it may stay.
func (s *Stream) overdue(m lane.Stored, b *Batch) (found Overdue, since time.Time) {
	in := m.Incoming(s.Name())
	in.BodyLeft = true
	e := entry.Parse(s.Policy, in)
	a := &Alarm{Subject: m.Subject, Generation: e.Generation, At: m.At, Size: m.BodySize(), Stage: Doubt, batch: b}
	switch {
	case e.Problem != nil: // the lane handles it
		return found, time.Time{}
	case e.Kind == entry.Fired:
		id, err := message.ParseID(e.Request.ID)
		if a.At = id.At; err != nil {
			return found, time.Time{}
		}
	case e.Kind == entry.Cancel, e.Kind == entry.Over:
		a.Generation, a.Stage, a.Entry = m.Sequence, Settled, m.Sequence
		a.Alone = !entry.CanName(s.Policy, m.Subject)
	}
	return Overdue{Alarm: a, Request: e.Request}, s.Ends(e, m.Subject, m.At)
}
