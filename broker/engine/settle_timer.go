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

// This file removes the entries of settled named timers, once no due message waits.

const (
	// settleEvery is the interval at which a stop retries to remove the entries of messages that have arrived.
	settleEvery = 100 * time.Millisecond
	// busyLane is the number of outstanding answers, not counting those to settlements, from which settlements wait.
	busyLane = 64
	// maxSettlements is the maximum number that wait until the lane is idle, and maxSettlementWait the maximum time: far
	// less than the time after which another instance would consider their firings abandoned. At twice as many, the lane
	// reads no further.
	maxSettlements    = 1 << 16
	maxSettlementWait = 10 * time.Second
	// settlementCost is the memory that a settlement takes.
	settlementCost = 512
)

// settlement is the record of a settled timer, until its entries are removed. Its message has left memory.
type settlement struct {
	timer *role.Alarm
	mark  lane.Mark    // of the message that the lane has read
	since time.Time    // local
	tries int          // to remove its entries
	waits wheel.Handle // for the next try

	id  string // of the request
	due time.Time
}

// request returns the part of the timer's request that an entry records.
func (s *settlement) request() message.Request {
	return message.Request{ID: s.id, Due: s.due}
}

// settlements are the settlements of a lane. The lane's loop owns them.
type settlements struct {
	queue    []*settlement             // in order
	repeats  *wheel.Wheel[*settlement] // waiting for another try
	arrived  map[*settlement]struct{}  // their messages would be sent again while the entries exist
	count    int                       // all settlements, including those in progress
	underway int                       // requests and publishes without an answer
}

func newSettlements() settlements {
	return settlements{repeats: wheel.New[*settlement](), arrived: make(map[*settlement]struct{})}
}

type (
	outcomeStored struct { // the entry with the outcome of a timer is stored, or could not be
		*settlement
		storeAnswer
	}
	removed struct { // entries have been removed, or could not be
		*settlement
		alone bool // no earlier entry is left
		err   error
	}
)

// remove ends a message whose timer is settled, and removes the timer's entries once no due message waits. The lane's
// cursor stays before the message until then.
func (w *worker) remove(f *flight) {
	s := &settlement{
		timer: f.timer, mark: f.mark, since: time.Now(), id: f.request.ID, due: f.request.Due,
	}
	if s.timer.Again() {
		w.timers.arrived[s] = struct{}{}
	}
	w.timers.count++
	w.forgetTimer(f)
	w.flights.end(f)
	w.timers.queue = append(w.timers.queue, s)
	w.charge()
}

// settleOn takes the next steps of several settlements.
func (w *worker) settleOn(m moment, local time.Time) {
	t := w.timers
	if !w.stopped.Load() { // a stop retries at its own interval
		for _, s := range t.repeats.Advance(m.now.Stamp()) {
			t.queue = append(t.queue, s)
		}
	}
	for len(t.queue) > 0 && t.settlements.underway < removers && !w.settlementsWait(local) {
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

// settlementsWait reports whether due messages come before settlements.
func (w *worker) settlementsWait(local time.Time) bool {
	t := w.timers
	if w.stopped.Load() || t.count > maxSettlements || w.full() || local.Sub(t.queue[0].since) > maxSettlementWait {
		return false
	}
	return w.flights.underway-t.settlements.underway > busyLane || len(t.uncopied)+len(t.unlooked) > 0
}

// nextRepeat returns when a settlement is tried again.
func (t *timers) nextRepeat() (leader.Time, bool) {
	at, ok := t.repeats.Next()
	return leader.At(at), ok
}

func (e outcomeStored) handle(w *worker, m moment) {
	w.flights.underway--
	w.timers.settlements.underway--
	step := e.timer.AfterOutcome(role.Answer{Ack: e.ack, Err: e.storeAnswer.err})
	if step.Kind == role.Remove {
		w.leftOut(e.timer)
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

// settled takes the next step of a settlement.
func (w *worker) settled(s *settlement, step role.Step, m moment) {
	t := w.timers
	if !s.timer.Again() {
		delete(t.arrived, s)
	}
	switch step.Kind {
	case role.Remove:
		s.tries = 0
		t.queue = append(t.queue, s)
	case role.Repeat:
		at := m.now // as soon as there is a connection
		if !acks.Offline(step.Err) {
			w.counts.Repeats.Add(1)
			at = at.Add(backOffTime(s.tries, t.count))
		}
		s.tries++
		s.waits = t.repeats.Add(at.Stamp(), s)
	case role.LetGo:
		delete(t.arrived, s)
		t.count--
		w.reading.cursor.Done(s.mark)
		w.endAlarm(s.timer)
		w.charge()
	default:
		panic("bug: unknown step of a settlement")
	}
}

// retryArrived makes the entries of messages that have arrived removable at once, before their next tries.
func (t *timers) retryArrived() {
	for s := range t.arrived {
		if t.repeats.Remove(s.waits) {
			t.queue = append(t.queue, s)
		}
	}
}
