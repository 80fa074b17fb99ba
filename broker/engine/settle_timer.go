package engine

import (
	"context"
	"log/slog"
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
	queue    turns[*settlement]        // to be carried out next
	retries  *wheel.Wheel[*settlement] // settlements that wait for another try
	required map[*settlement]struct{}  // drain waits for these: their entries would make the next instance deliver again
	count    int                       // number of settlements, including those in progress
}

// settlementAnswered is the event that a request of a settlement has ended: a removal, or the publish of the outcome.
type settlementAnswered struct {
	*settlement
	event role.Event
}

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
	w.forgetTimer(f)
	w.flights.end(f)
	w.timers.settle(s)
	w.charge()
}

// settle queues the next step of a settlement.
func (t *timers) settle(s *settlement) {
	t.queue.add(message.Tenant(t.lane.Policy.Names.Parse(s.timer.Subject).Target), s, true)
}

// startSettlements begins the next steps of queued settlements.
func (w *worker) startSettlements(m moment) {
	t := w.timers
	if !w.stopped.Load() { // drain retries at its own interval
		for _, s := range t.retries.Advance(m.now.Stamp()) {
			t.settle(s)
		}
	}
	for t.queue.waiting > 0 && !w.settlementsWait(m.local) {
		s, ok := t.queue.take(nil)
		if !ok {
			return
		}
		if outcome := s.timer.Outcome(message.Request{ID: s.id, Due: s.due}); outcome != nil {
			w.publish(t.lane.Name(), outcome, func(a storeAnswer) {
				w.mail.Put(settlementAnswered{s, role.Published(a.Reply)})
			})
			continue
		}
		request := s.timer.Request(0)
		w.ask(func(ctx context.Context) event { return settlementAnswered{s, request(ctx)} })
	}
}

// settlementsWait reports whether the queued settlements must wait because the lane is busy: see maxAnswers.
func (w *worker) settlementsWait(local time.Time) bool {
	t := w.timers
	if w.stopped.Load() || t.count > maxSettlements || w.full() ||
		local.Sub(t.queue.order[0].ready[0].settledAt) > maxSettlementWait {
		return false
	}
	return w.flights.unanswered-len(t.queue.begun) > maxAnswers || t.queued() > 0
}

// handle queues the next step of a settlement, or ends the settlement.
func (e settlementAnswered) handle(w *worker, m moment) {
	s, t := e.settlement, w.timers
	w.flights.unanswered--
	t.queue.end(s)
	step := s.timer.Handle(e.event, role.Situation{Now: m.now, Local: m.local})
	w.engine.Tally.MissedRounds.Add(uint64(step.Missed))
	if step.Paused {
		w.engine.Tally.PausedSeries.Add(1)
		w.limitedLog.Log(slog.LevelWarn, "a series is paused after dead letters in a row; repair its target, and resume it",
			"timer", s.timer.Subject)
	}
	if !s.timer.MayRepeat() {
		delete(t.required, s)
	}
	switch step.Kind {
	case role.Remove:
		s.tries = 0
		t.settle(s)
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
		s.timer.End()
		w.charge()
	default:
		panic("bug: unknown step of a settlement")
	}
}

// retryRequired queues the required settlements that wait for another try.
func (t *timers) retryRequired() {
	for s := range t.required {
		if t.retries.Remove(s.retryHandle) {
			t.settle(s)
		}
	}
}
