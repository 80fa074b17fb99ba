package engine

import (
	"context"
	"time"

	"delaybroker/broker/acks"
	"delaybroker/broker/lane"
	"delaybroker/broker/message"
	"delaybroker/broker/timer/role"
	"delaybroker/wheel"
)

// This file removes the entries of settled named timers. Due messages go first, within bounds: see maxSettlements.

const (
	// settleInterval is the interval at which drain retries the required settlements.
	settleInterval = 100 * time.Millisecond
	// A lane is busy while it has timers to read, or waits for more than maxAnswers answers, apart from settlements.
	maxAnswers = 64
	// Settlements wait while the lane is busy, until there are more than maxSettlements settlements, the first one has
	// waited for maxSettlementWait, the lane's memory is used up, or the worker stops. After a time much longer than
	// maxSettlementWait, another instance would consider the firing abandoned. At twice maxSettlements, the lane stops
	// reading.
	maxSettlements    = 1 << 16
	maxSettlementWait = 10 * time.Second
	// settlementCost is the memory that a settlement takes, in bytes.
	settlementCost = 512
)

// settlement is a settled timer whose entries are to be removed. The timer's message is not in memory any more.
type settlement struct {
	timer       *role.Alarm
	mark        lane.Mark    // of the timer's message, in the lane's cursor
	settledAt   time.Time    // local
	tries       int          // number of failed tries of the present step, removal or outcome
	retryHandle wheel.Handle // the place in settlements.retries

	id  string    // of the timer's request
	due time.Time // of the timer's request
}

// settlements are the settlements of a lane. Only the lane's loop uses them.
type settlements struct {
	queue      []*settlement             // to be carried out next, in order
	retries    *wheel.Wheel[*settlement] // settlements that wait for another try
	required   map[*settlement]struct{}  // drain waits for these: their entries would make the next owner deliver again
	count      int                       // number of settlements, including those in progress
	unanswered int                       // number of the settlements' requests and publishes without an answer
}

type (
	outcomeStored struct { // the event that the publish of a timer's outcome has ended
		*settlement
		storeAnswer
	}
	removed struct { // the event that the removal of entries has ended
		*settlement
		earlierRemoved bool // no entry of an earlier round is left
		err            error
	}
)

// remove removes the message of a settled timer from memory, and queues the removal of the timer's entries. The lane's
// cursor does not pass the message until the entries are removed.
func (w *worker) remove(f *flight) {
	s := &settlement{
		timer: f.timer, mark: f.mark, settledAt: time.Now(), id: f.request.ID, due: f.request.Due,
	}
	if s.timer.MayRepeat() {
		w.timers.required[s] = struct{}{}
	}
	w.timers.count++
	w.timers.stream.Settle(f.timer)
	w.forgetTimer(f)
	w.flights.end(f)
	w.timers.queue = append(w.timers.queue, s)
	w.charge()
}

// startSettlements begins the next steps of queued settlements, at most maxRemovals concurrently.
func (w *worker) startSettlements(m moment) {
	t := w.timers
	if !w.stopped.Load() { // drain retries at its own interval
		for _, s := range t.retries.Advance(m.now.Stamp()) {
			t.queue = append(t.queue, s)
		}
	}
	for len(t.queue) > 0 && t.settlements.unanswered < maxRemovals && !w.settlementsWait(m.local) {
		s := t.queue[0]
		t.queue = t.queue[1:]
		t.settlements.unanswered++
		if t.stream.HasOutcome(s.timer) {
			outcome := t.stream.OutcomeEntry(s.timer, message.Request{ID: s.id, Due: s.due})
			w.publish(t.stream.Name(), outcome, func(a storeAnswer) { w.mail.Put(outcomeStored{s, a}) })
			continue
		}
		subject, generation, removal := s.timer.Subject, s.timer.Generation, s.timer.Removal
		w.ask(func(ctx context.Context) event {
			earlierRemoved, err := t.stream.RemoveEntries(ctx, subject, generation, removal)
			return removed{s, earlierRemoved, err}
		})
	}
}

// settlementsWait reports whether the queued settlements must wait because the lane is busy: see maxAnswers.
func (w *worker) settlementsWait(local time.Time) bool {
	t := w.timers
	if w.stopped.Load() || t.count > maxSettlements || w.full() || local.Sub(t.queue[0].settledAt) > maxSettlementWait {
		return false
	}
	return w.flights.unanswered-t.settlements.unanswered > maxAnswers || t.queued() > 0
}

func (e outcomeStored) handle(w *worker, m moment) {
	w.flights.unanswered--
	w.timers.settlements.unanswered--
	step := e.timer.AfterOutcome(role.Answer{Ack: e.ack, Err: e.storeAnswer.err})
	if step.Kind == role.Remove {
		w.countMissed(e.timer)
	}
	w.continueSettlement(e.settlement, step, m)
}

func (e removed) handle(w *worker, m moment) {
	w.flights.unanswered--
	w.timers.settlements.unanswered--
	if e.err == nil {
		w.timers.stream.Removed(e.timer, e.earlierRemoved)
	}
	w.continueSettlement(e.settlement, e.timer.AfterRemoval(e.err), m)
}

// continueSettlement queues the next step of a settlement, or ends the settlement.
func (w *worker) continueSettlement(s *settlement, step role.Step, m moment) {
	t := w.timers
	if !s.timer.MayRepeat() {
		delete(t.required, s)
	}
	switch step.Kind {
	case role.Remove:
		s.tries = 0
		t.queue = append(t.queue, s)
	case role.Repeat:
		at := m.now
		if !acks.Offline(step.Err) { // while the connection is lost, no pass begins settlements, so no backoff is needed
			w.counts.Repeats.Add(1)
			at = at.Add(backOffTime(s.tries, t.count))
		}
		s.tries++
		s.retryHandle = t.retries.Add(at.Stamp(), s)
	case role.Drop:
		delete(t.required, s)
		t.count--
		w.reading.cursor.Done(s.mark)
		w.endAlarm(s.timer)
		w.charge()
	default:
		panic("bug: unknown step of a settlement")
	}
}

// retryRequired queues the required settlements that wait for another try.
func (t *timers) retryRequired() {
	for s := range t.required {
		if t.retries.Remove(s.retryHandle) {
			t.queue = append(t.queue, s)
		}
	}
}
