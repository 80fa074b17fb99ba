package engine

import (
	"fmt"
	"time"

	"delaybroker/broker/timer/role"
)

// proceed decides the next step of a message, and carries it out.
func (w *worker) proceed(f *flight, m moment) {
	s := nextStep(w.plan, m, f)
	if f.hasNewerFormat() {
		w.flights.newerFormat[f] = struct{}{}
		w.lease.Decline()
	}
	w.setOverdue(f, s)
	w.apply(f, s, m)
}

// setOverdue records the time since which a message is overdue, if it is. The steps that are not listed change nothing.
func (w *worker) setOverdue(f *flight, s step) {
	switch s.kind {
	case hold, hop, fire, park, dead:
		since, overdue := overdueSince(w.plan, f, s)
		w.flights.setOverdue(f, since, overdue)
	}
}

func (w *worker) apply(f *flight, s step, m moment) {
	switch line := s.line; {
	case line == nil:
	case s.logKey != "":
		w.engine.refusals.Log(s.logKey, line.level, line.text, line.args...)
	default:
		w.limitedLog.Log(line.level, line.text, line.args...)
	}
	switch s.kind {
	case hold:
		f.awaitsHop = s.awaitsHop
		w.flights.packOrHold(f, s.at, m.now)
	case backOff:
		w.counts.Repeats.Add(1)
		f.tries++
		w.flights.hold(f, s.at)
	case pace:
		f.request = *s.request
		w.proceed(f, m)
	case awaitKey:
		w.awaitKey(f, m)
	case awaitClose:
		w.flights.closing = append(w.flights.closing, f)
	case readCopy:
		w.timers.copyQueue = append(w.timers.copyQueue, f) // the next pass reads the queue in batches
	case examine:
		w.askLeader(f)
	case claim:
		w.claim(f, m)
	case decideAgain:
		w.proceed(f, m)
	case remove:
		w.remove(f)
	case hop, retry, park, dead:
		f.sent = w.publishOf(f, s)
		if s.kind == park {
			w.parking.begin(time.Now())
		}
		w.store(f)
	case repeat:
		w.store(f)
	case renew:
		f.sent.renew()
		w.store(f)
	case check:
		w.check(f)
	case fire:
		w.fire(f, m)
	case arrive:
		if f.sent != nil && f.sent.kind == dead {
			f.timer = w.timers.lane.Fail(f.timer, f.request, f.sent.problem.Sentence)
		}
		if f.timer != nil && f.timer.Arrived(destination(f.sent)) {
			w.remove(f)
			return
		}
		w.end(f)
	default:
		panic(fmt.Sprintf("bug: unknown step %d", s.kind))
	}
}

// destination returns the place at which the message of a timer has arrived. Sent is the answered publish into one of
// our streams, or nil if the message was delivered to its target. A timer that needs no delivery (role.Drop) also has a
// nil sent, and Alarm.Arrived ignores its destination.
func destination(sent *publish) role.Destination {
	switch {
	case sent == nil:
		return role.Target
	case sent.kind == hop:
		return role.Level
	case sent.kind == dead:
		return role.DeadLetters
	}
	return role.RetryLane
}

// end removes a message from memory, and tells the cursor that the message has arrived.
func (w *worker) end(f *flight) {
	if f.timer != nil {
		w.forgetTimer(f)
		f.timer.End()
	}
	w.flights.end(f)
	// If the message was moved to another lane to wait for a send time, it must be deleted from this lane soon: after a
	// crash, it would be moved again, and reserve another send time.
	if f.sent != nil && f.sent.kind == hop && f.request.Reservation != "" {
		w.reading.cursor.DoneUrgent(f.mark)
	} else {
		w.reading.cursor.Done(f.mark)
	}
	w.charge()
}

// awaitKey handles a message whose seal has an unknown key. Another instance that has just started may have created the
// key. So the message waits until the Keyring has read the keys again. If the settings name all keys, the message does
// not wait. If the key is still unknown then, or if too many messages wait (maxKeyWaits), the seal counts as forged.
func (w *worker) awaitKey(f *flight, m moment) {
	local := time.Now()
	if w.flights.beginKeyWait(f, local) && !w.engine.Keys.ReadSince(f.keyWait.since, local) {
		w.flights.hold(f, m.now.Add(keysRetry))
		return
	}
	in := f.keyWait.incoming
	in.KeysCurrent = true
	w.flights.endKeyWait(f)
	if w.parse(f, in) {
		w.proceed(f, m)
	}
}
