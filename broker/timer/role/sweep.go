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
	// sweepLate is how long overdue a timer must be for a pass to return it: its lane had the time to fire it.
	sweepLate = time.Minute
	// The next pass begins sweepShare times as long after a pass as that one took, so that passes take a hundredth of
	// the time, and within these bounds.
	sweepShare            = 100
	sweepLeast, sweepMost = time.Minute, time.Hour
	sweepBatchSize        = 256
)

// Sweep says when to pass through the timers' stream. It belongs to the loop of its lane.
type Sweep struct {
	next    time.Time // local; zero before the first
	running bool
	// earliest is the first due time of the timers that the last pass has left, and of those that were read since:
	// before that, there is nothing to find. It is zero where there is none.
	earliest leader.Time
}

// Left notes that a timer is due at a time, or that something should have gone since. Zero is no time.
func (s *Sweep) Left(due time.Time) {
	if due.IsZero() {
		return
	}
	if s.earliest.IsZero() || leader.At(due).Before(s.earliest) {
		s.earliest = leader.At(due)
	}
}

// Wait is how long until the next pass, which is when the lane is taken over, and then as often as it costs little. Ok
// is false while none is due for now: something must be read first, or a pass must end. A marker may be lost with its
// level, or by a power cut; the timer's own entry is the truth.
func (s *Sweep) Wait(now leader.Time, local time.Time, empty bool) (wait time.Duration, ok bool) {
	switch {
	case s.running:
		return 0, false
	case s.next.IsZero(): // the first
		if empty {
			return 0, false
		}
	case s.earliest.IsZero():
		return 0, false // there is nothing, and nothing has come
	}
	wait = s.next.Sub(local)
	if !s.earliest.IsZero() && !s.next.IsZero() {
		wait = max(wait, s.earliest.Add(sweepLate).Sub(now))
	}
	return wait, true
}

// Begin begins a pass: it looks for timers that were due before a time.
func (s *Sweep) Begin(now leader.Time) (before time.Time) {
	s.running, s.earliest = true, leader.Time{}
	return now.Add(-sweepLate).Stamp()
}

// End takes in the end of a pass.
func (s *Sweep) End(p Pass, local time.Time) {
	s.running, s.next = false, local.Add(min(max(sweepLeast, sweepShare*p.took), sweepMost))
	if p.Err != nil {
		s.next = local.Add(sweepLeast)
		s.Left(time.Time{}.Add(1))
	}
	s.Left(p.left)
}

// Pass is the end of a pass.
type Pass struct {
	Err  error
	left time.Time // the first due time of those that were not late; zero for none
	took time.Duration

	seals seals
}

// Batch are timers that a pass has found. The pass goes on when all of them have ended.
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

// Overdue is a timer that its lane has not fired, or an entry that has recorded the outcome of one for long enough.
type Overdue struct {
	Alarm   *Alarm
	Request message.Request
}

// Pass goes through the stream once, and hands over what was due before a time, in batches. It waits until the alarms
// of a batch have ended (Alarm.End), or ctx.
func (s *Stream) Pass(ctx context.Context, before time.Time, pick func(*Batch)) (end Pass) {
	start, waited := time.Now(), time.Duration(0) // for the batches, which cost nothing
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

// leave notes what a later pass must look at.
func (p *Pass) leave(since time.Time) {
	if p.left.IsZero() || since.Before(p.left) {
		p.left = since
	}
}

// handOver gives a batch away, and waits until its timers have ended.
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

// overdue reads an entry by its header, and returns since when it should be gone; zero if it may stay.
func (s *Stream) overdue(m lane.Stored, b *Batch) (found Overdue, since time.Time) {
	in := m.Incoming(s.Name())
	in.BodyLeft = true
	e := entry.Parse(s.Policy, in)
	a := &Alarm{Subject: m.Subject, Generation: e.Generation, At: m.At, Size: m.BodySize(), Stage: Doubt, batch: b}
	switch {
	case e.Problem != nil: // the lane sees to it
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
