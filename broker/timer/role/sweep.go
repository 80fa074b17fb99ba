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
	// sweepLate is the minimum lateness of the timers that a pass finds: before that, only their lanes fire them.
	sweepLate = time.Minute
	// The pause between two passes is sweepShare times the duration of the earlier pass, at least minSweepPause and at
	// most maxSweepPause.
	sweepShare                   = 100
	minSweepPause, maxSweepPause = time.Minute, time.Hour
	sweepBatchSize               = 256
)

// Sweep schedules the sweep passes, which are scans of the timers' stream. Only the loop of the timers' lane uses it.
type Sweep struct {
	nextAt  time.Time // the earliest time of the next pass, by this host's clock; zero until the first pass has ended
	running bool
	// earliest is the earliest deadline of the entries that the latest pass has postponed, and of the entries that the
	// lane has read after that pass began. It is zero if there are no such entries.
	earliest leader.Time
}

// noteDue records the deadline of an entry: see Stream.deadline. For an entry to reseal, the deadline is the time at
// which the entry was stored. noteDue ignores the zero time.
func (s *Sweep) noteDue(due time.Time) {
	if due.IsZero() {
		return
	}
	if s.earliest.IsZero() || leader.At(due).Before(s.earliest) {
		s.earliest = leader.At(due)
	}
}

// Wait returns the time until the next pass. The first pass need not wait. Ok is false while a pass runs, before the
// first pass while the stream is empty, and later while no known entry has a deadline.
func (s *Sweep) Wait(now leader.Time, local time.Time, empty bool) (wait time.Duration, ok bool) {
	first := s.nextAt.IsZero()
	switch {
	case s.running, first && empty, !first && s.earliest.IsZero():
		return 0, false
	case first:
		return 0, true
	}
	return max(s.nextAt.Sub(local), s.earliest.Add(sweepLate).Sub(now)), true
}

// Begin records that a pass begins. The pass must handle the entries whose deadline is the cutoff or earlier.
func (s *Sweep) Begin(now leader.Time) (cutoff time.Time) {
	s.running, s.earliest = true, leader.Time{}
	return now.Add(-sweepLate).Stamp()
}

// End records the end of a pass.
func (s *Sweep) End(p Pass, local time.Time) {
	s.running, s.nextAt = false, local.Add(min(max(minSweepPause, sweepShare*p.took), maxSweepPause))
	if p.Err != nil {
		s.nextAt = local.Add(minSweepPause)
		s.noteDue(time.Time{}.Add(1)) // in the past, so only nextAt delays the next pass
	}
	s.noteDue(p.earliestDue)
}

// Pass is the result of a pass.
type Pass struct {
	Err         error
	earliestDue time.Time     // the earliest time given to postpone; zero for none
	took        time.Duration // the duration of the pass, without its waits for batches and reseals

	seals seals
}

// Batch holds timers that a pass has found.
type Batch struct {
	Timers    []Overdue
	remaining atomic.Int64  // number of alarms that have not ended
	done      chan struct{} // closed when all alarms have ended
}

func newBatch() *Batch { return &Batch{done: make(chan struct{})} }

func (b *Batch) endOne() {
	if b.remaining.Add(-1) == 0 {
		close(b.done)
	}
}

// Overdue is a timer that no lane has fired or settled in time, or a cancel or an outcome that was kept long enough:
// see Config.History.
type Overdue struct {
	Alarm   *Alarm
	Request message.Request
}

// Pass scans the stream once. It calls handle with batches of the entries whose deadline is the cutoff or earlier.
// After each batch, Pass waits until all alarms of the batch have ended (Alarm.End), or until ctx ends. Pass also
// reseals entries.
func (l *Lane) Pass(ctx context.Context, cutoff time.Time, handle func(*Batch)) (end Pass) {
	start, waited := time.Now(), time.Duration(0)
	s := l.Stream
	scan := s.Scan
	scan.Stream, scan.Observer, scan.HeadersOnly = s.Name(), "sweep", true
	scan.Filters = []string{s.Policy.Names.TimerFilter()}
	b := newBatch()
	for m, err := range scan.All(ctx) {
		if err != nil {
			end.Err = err
			break
		}
		in := m.Incoming(s.Name())
		in.HeadersOnly = true
		e := entry.Parse(s.Policy, in)
		found, deadline := l.overdue(e, m, b)
		began := time.Now()
		done, revisit := end.seals.checkKey(ctx, s, in, e, cutoff)
		waited += time.Since(began)
		if revisit {
			end.postpone(m.At)
		}
		if done {
			continue
		}
		switch {
		case deadline.IsZero():
		case !deadline.After(cutoff):
			b.Timers = append(b.Timers, found)
		default:
			end.postpone(deadline)
		}
		if len(b.Timers) == sweepBatchSize {
			began := time.Now()
			b.handOver(ctx, handle)
			waited += time.Since(began)
			b = newBatch()
		}
	}
	end.took = time.Since(start) - waited
	if end.Err == nil && end.seals.err == nil {
		end.seals.err = s.resealCursor(ctx)
	}
	b.handOver(ctx, handle)
	return end
}

// postpone records the deadline of an entry that a later pass must handle: see noteDue.
func (p *Pass) postpone(due time.Time) {
	if p.earliestDue.IsZero() || due.Before(p.earliestDue) {
		p.earliestDue = due
	}
}

// handOver passes a batch to handle, and waits until the batch's alarms have ended.
func (b *Batch) handOver(ctx context.Context, handle func(*Batch)) {
	if len(b.Timers) == 0 {
		return
	}
	b.remaining.Store(int64(len(b.Timers)))
	handle(b)
	select {
	case <-b.done:
	case <-ctx.Done():
	}
}

// overdue returns the timer of an entry that was read without its body, and the entry's deadline. The deadline is zero
// if the sweep need not handle the entry.
func (l *Lane) overdue(e entry.Entry, m lane.Message, b *Batch) (found Overdue, deadline time.Time) {
	a := &Alarm{
		Subject: m.Subject, Generation: e.Generation, At: m.At, Size: m.BodySize(), lane: l, state: doubt, batch: b,
	}
	switch {
	case e.Problem != nil: // the timers' lane handles an invalid entry
		return found, time.Time{}
	case e.Kind == entry.Fired:
		id, err := message.ParseID(e.Request.ID)
		if a.At = id.At; err != nil {
			return found, time.Time{}
		}
	case e.Kind == entry.Cancel, e.Kind == entry.Over:
		a.Generation, a.state, a.removal.entry = m.Sequence, settled, m.Sequence
		if !entry.ValidSubject(l.Policy, m.Subject) {
			a.removal.reach = onlyThis
		}
	}
	return Overdue{Alarm: a, Request: e.Request}, l.deadline(e, m.Subject, m.At)
}
