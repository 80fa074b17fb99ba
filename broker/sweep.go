package broker

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"delaybroker/broker/lane"
	"delaybroker/broker/layout"
	"delaybroker/broker/leader"
	"delaybroker/broker/message"
)

const (
	// sweepLate is how long overdue a timer is when a pass picks it up: its lane had the time to fire it.
	sweepLate = time.Minute
	// The next pass begins sweepShare times as long after a pass as that one took, so that passes take a hundredth of the
	// time, and within these bounds.
	sweepShare            = 100
	sweepLeast, sweepMost = time.Minute, time.Hour
	sweepBatchSize        = 256
)

// sweep is the state of the passes through the timers' stream. It belongs to the lane's loop.
type sweep struct {
	next    time.Time // local; zero before the first
	running bool
	// earliest is the first due time of the timers that the last pass has left, and of those that were read since: before
	// that, there is nothing to find. It is zero where there is none.
	earliest leader.Time
}

// left notes that a timer is due at a time, or that something should have gone since.
func (s *sweep) left(due time.Time) {
	if s.earliest.IsZero() || leader.At(due).Before(s.earliest) {
		s.earliest = leader.At(due)
	}
}

// sweepBatch are timers that a pass has picked up. The pass goes on when all of them have ended.
type sweepBatch struct {
	found []straggler
	left  atomic.Int64
	done  chan struct{}
}

func (b *sweepBatch) ended() {
	if b.left.Add(-1) == 0 {
		close(b.done)
	}
}

// straggler is a timer that its lane has not fired, or an entry that has told for long enough what became of one.
type straggler struct {
	subject    string
	generation uint64
	at         time.Time // of the set
	size       int       // of the body
	request    message.Request
	over       bool
}

// swept is the event that a pass has picked some up, or has ended.
type swept struct {
	batch *sweepBatch // nil at the end
	left  time.Time   // at the end: the first due time of those that were not late; zero for none
	took  time.Duration
	err   error
}

// sweepSoon begins a pass if one is due, and returns how long until the next: when the lane is taken over, and then as
// often as it costs little. A marker may be lost with its level, or by a power cut; the timer's own entry is the truth.
func (w *worker) sweepSoon(m moment, local time.Time) time.Duration {
	s := &w.timers.sweep
	switch {
	case w.lane.Kind != layout.Timers, s.running, !w.clock.Known(), !w.reading.live():
		return forever
	case s.next.IsZero(): // the first
		if w.reading.seen.Messages == 0 && w.reading.last.Sequence == 0 {
			return forever
		}
	case s.earliest.IsZero():
		return forever // there is nothing, and nothing has come
	}
	wait := s.next.Sub(local)
	if !s.earliest.IsZero() && !s.next.IsZero() {
		wait = max(wait, s.earliest.Add(sweepLate).Sub(m.now))
	}
	if wait > 0 {
		return wait
	}
	if !w.lease.Held() || !w.shared.links.online() {
		return forever // the loop is woken when they are back
	}
	s.running, s.earliest = true, leader.Time{}
	before := m.now.Add(-sweepLate).Stamp()
	w.wg.Go(func() { w.mail.Put(w.sweepThrough(before)) })
	return forever
}

// sweepThrough is one pass, which picks up what was due before a time.
func (w *worker) sweepThrough(before time.Time) (end swept) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var watching = make(chan struct{})
	defer func() { <-watching }()
	go func() {
		defer close(watching)
		select {
		case <-ctx.Done():
		case <-w.gone:
			cancel()
		}
	}()
	defer cancel()
	start, waited := time.Now(), time.Duration(0) // for what was picked up, which costs nothing
	names := w.shared.names
	scan := lane.Scan{
		Conn: w.shared.sweeping.Conn, JetStream: w.shared.sweeping.JetStream, APIPrefix: w.shared.sweeping.API,
		Stream: names.TimersStream(), For: "sweep", Filters: []string{names.TimerFilter()}, HeadersOnly: true,
	}
	b := &sweepBatch{done: make(chan struct{})}
	for s, err := range scan.All(ctx) {
		if err != nil {
			end.err = err
			break
		}
		switch found, since := w.straggler(s); {
		case since.IsZero():
		case !since.After(before):
			b.found = append(b.found, found)
		case end.left.IsZero() || since.Before(end.left):
			end.left = since
		}
		if len(b.found) == sweepBatchSize {
			began := time.Now()
			b = w.pickUp(ctx, b)
			waited += time.Since(began)
		}
	}
	end.took = time.Since(start) - waited
	w.pickUp(ctx, b)
	return end
}

// pickUp gives a batch to the loop, waits until its timers have ended, and returns an empty one.
func (w *worker) pickUp(ctx context.Context, b *sweepBatch) *sweepBatch {
	if len(b.found) > 0 {
		b.left.Store(int64(len(b.found)))
		w.mail.Put(swept{batch: b})
		select {
		case <-b.done:
		case <-ctx.Done():
		}
	}
	return &sweepBatch{done: make(chan struct{})}
}

// straggler is what an entry is by its header, and since when it should be gone; zero if it may stay.
func (w *worker) straggler(s lane.Stored) (found straggler, since time.Time) {
	e := w.shared.keys.policy.ParseTimer(message.Incoming{
		Stream: w.lane.Stream, Sequence: s.Sequence, At: s.At, Subject: s.Subject, Header: s.Header,
		Undecodable: s.Undecodable, BodyLeft: true,
	})
	found = straggler{subject: s.Subject, generation: e.Generation, at: s.At, request: e.Request}
	found.size, _ = strconv.Atoi(strings.Join(s.Header["Nats-Msg-Size"], "")) // of the server; without, it counts as none
	switch {
	case e.Problem != nil: // the lane sees to it
	case e.Kind == message.SetEntry:
		return found, e.Request.Due
	case e.Kind == message.FiredEntry:
		id, err := message.ParseID(e.Request.ID)
		if found.at = id.At; err == nil {
			return found, s.At
		}
	case e.Kind == message.CancelEntry, e.Kind == message.OverEntry:
		found.over, found.generation = true, s.Sequence
		return found, s.At.Add(w.plan.history - sweepLate)
	}
	return found, time.Time{}
}

// swept takes in what a pass has picked up, or its end.
func (w *worker) swept(e swept, m moment, local time.Time) {
	if e.batch == nil {
		s := &w.timers.sweep
		s.running, s.next = false, local.Add(min(max(sweepLeast, sweepShare*e.took), sweepMost))
		if e.err != nil {
			s.next = local.Add(sweepLeast)
			w.notes.Log(slog.LevelWarn, "looking for overdue timers; trying again", "err", e.err)
			s.left(time.Time{}.Add(1))
		}
		if !e.left.IsZero() {
			s.left(e.left)
		}
		return
	}
	for _, found := range e.batch.found {
		if w.timers.latest[found.subject] != nil { // it is in memory already
			e.batch.ended()
			continue
		}
		stored := lane.Stored{Sequence: found.generation, At: found.at, Subject: found.subject}
		f := w.flights.take(stored, w.reading.cursor.Void())
		f.request = found.request
		f.timer = &timing{
			subject: found.subject, generation: found.generation, at: found.at, size: found.size, stage: stageDoubt,
			batch: e.batch,
		}
		if found.over {
			f.timer.stage, f.timer.entry = stageSettled, found.generation
			f.timer.alone = !w.shared.keys.policy.CanName(found.subject)
		}
		if !m.proven || !w.lease.Held() {
			w.flights.untimed = append(w.flights.untimed, f)
			continue
		}
		w.proceed(f, m)
	}
	w.charge()
}
