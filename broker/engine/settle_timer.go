package engine

import (
	"context"
	"time"

	"delaybroker/broker/acks"
	"delaybroker/broker/lane"
	"delaybroker/broker/leader"
	"delaybroker/broker/message"
	"delaybroker/broker/timer/role"
	"delaybroker/wheel"
)

// This file removes the entries of settled named timers, while no due message waits.

const (
	// settleEvery is the interval at which drain retries to remove the entries of timers whose messages have arrived.
	settleEvery = 100 * time.Millisecond
	// Settlements wait while more than maxAnswers other answers are outstanding, or more than maxAnswers timers of the
	// instance are between their claim and the end of their delivery.
	maxAnswers = 64
	// Settlements wait while due messages wait, unless there are more than maxSettlements settlements, or one has
	// waited longer than maxSettlementWait. maxSettlementWait must be far less than the time after which another
	// instance considers a firing abandoned. With twice maxSettlements, the lane stops reading.
	maxSettlements    = 1 << 16
	maxSettlementWait = 10 * time.Second
	// settlementCost is the memory that a settlement takes, in bytes.
	settlementCost = 512
)

// settlement is a settled timer whose entries are to be removed. Its message has left memory.
type settlement struct {
	timer *role.Alarm
	mark  lane.Mark    // of the message that the lane has read
	since time.Time    // local; when the timer was settled
	tries int          // number of failed tries to remove its entries
	waits wheel.Handle // its place in settlements.repeats

	id  string    // of the timer's request
	due time.Time // of the timer's request
}

// request returns the part of the timer's request that an entry records.
func (s *settlement) request() message.Request {
	return message.Request{ID: s.id, Due: s.due}
}

// settlements are the settlements of a lane. Only the lane's loop uses them.
type settlements struct {
	queue    []*settlement             // to be carried out next, in order
	repeats  *wheel.Wheel[*settlement] // settlements that wait for another try
	arrived  map[*settlement]struct{}  // settlements whose entries would make the next owner deliver the message again
	count    int                       // number of settlements, including those in progress
	underway int                       // requests and publishes without an answer
}

func newSettlements() settlements {
	return settlements{repeats: wheel.New[*settlement](), arrived: make(map[*settlement]struct{})}
}

type (
	outcomeStored struct { // the event that a publish of the outcome of a timer has ended
		*settlement
		storeAnswer
	}
	removed struct { // the event that the removal of entries has ended
		*settlement
		alone bool // no entry of an earlier round is left
		err   error
	}
)

// remove removes a message whose timer is settled from memory, and queues the removal of the timer's entries. The
// lane's cursor does not pass the message until the entries are removed.
func (w *worker) remove(f *flight) {
	s := &settlement{
		timer: f.timer, mark: f.mark, since: time.Now(), id: f.request.ID, due: f.request.Due,
	}
	if s.timer.MayRepeat() {
		w.timers.arrived[s] = struct{}{}
	}
	w.timers.count++
	w.timers.stream.Settle(f.timer)
	w.forgetTimer(f)
	w.flights.end(f)
	w.timers.queue = append(w.timers.queue, s)
	w.charge()
}

// startSettlements begins the next steps of settlements, up to maxRemovals concurrently.
func (w *worker) startSettlements(m moment, local time.Time) {
	t := w.timers
	if !w.stopped.Load() { // drain retries at its own interval
		for _, s := range t.repeats.Advance(m.now.Stamp()) {
			t.queue = append(t.queue, s)
		}
	}
	for len(t.queue) > 0 && t.settlements.underway < maxRemovals && !w.settlementsWait(local) {
		s := t.queue[0]
		t.queue = t.queue[1:]
		t.settlements.underway++
		if t.stream.HasOutcome(s.timer) {
			over := t.stream.Over(s.timer, s.request())
			w.publish(t.stream.Name(), over, func(a storeAnswer) { w.mail.Put(outcomeStored{s, a}) })
			continue
		}
		subject, generation, what := s.timer.Subject, s.timer.Generation, s.timer.Removal
		w.ask(func(ctx context.Context) event {
			alone, err := t.stream.RemoveEntries(ctx, subject, generation, what)
			return removed{s, alone, err}
		})
	}
}

// settlementsWait reports whether settlements wait for due messages, of this lane or of another lane's timers.
func (w *worker) settlementsWait(local time.Time) bool {
	t := w.timers
	if w.stopped.Load() || t.count > maxSettlements || w.full() || local.Sub(t.queue[0].since) > maxSettlementWait {
		return false
	}
	return w.flights.underway-t.settlements.underway > maxAnswers || len(t.uncopied)+len(t.unlooked) > 0 ||
		t.stream.Firings() > maxAnswers
}

// nextRepeat returns the time of the next retry of a settlement.
func (t *timers) nextRepeat() (leader.Time, bool) {
	at, ok := t.repeats.Next()
	return leader.At(at), ok
}

func (e outcomeStored) handle(w *worker, m moment) {
	w.flights.underway--
	w.timers.settlements.underway--
	step := e.timer.AfterOutcome(role.Answer{Ack: e.ack, Err: e.storeAnswer.err})
	if step.Kind == role.Remove {
		w.countMissed(e.timer)
	}
	w.settled(e.settlement, step, m)
}

func (e removed) handle(w *worker, m moment) {
	w.flights.underway--
	w.timers.settlements.underway--
	if e.err == nil {
		w.timers.stream.Removed(e.timer, e.alone)
	}
	w.settled(e.settlement, e.timer.AfterRemoval(e.err), m)
}

// settled queues the next step of a settlement, or ends the settlement.
func (w *worker) settled(s *settlement, step role.Step, m moment) {
	t := w.timers
	if !s.timer.MayRepeat() {
		delete(t.arrived, s)
	}
	switch step.Kind {
	case role.Remove:
		s.tries = 0
		t.queue = append(t.queue, s)
	case role.Repeat:
		at := m.now // while the connection is lost, no pass begins settlements, so no later time is needed
		if !acks.Offline(step.Err) {
			w.counts.Repeats.Add(1)
			at = at.Add(backOffTime(s.tries, t.count))
		}
		s.tries++
		s.waits = t.repeats.Add(at.Stamp(), s)
	case role.Drop:
		delete(t.arrived, s)
		t.count--
		w.reading.cursor.Done(s.mark)
		w.endAlarm(s.timer)
		w.charge()
	default:
		panic("bug: unknown step of a settlement")
	}
}

// retryArrived queues the settlements that wait for another try, if the message of the timer has arrived.
func (t *timers) retryArrived() {
	for s := range t.arrived {
		if t.repeats.Remove(s.waits) {
			t.queue = append(t.queue, s)
		}
	}
}
