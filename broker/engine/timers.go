package engine

import (
	"delaybroker/broker/timer/role"
	"delaybroker/wheel"
)

// timers holds the named timers that a lane has in memory. Only the lane's loop uses it. See package role.
type timers struct {
	lane        *role.Lane
	lastSets    map[string]*flight // by subject: the latest set, if it is in memory; only in the timers' lane
	loadedBytes int                // bytes of the bodies and headers that are in memory, or about to be read

	copyReads int            // number of requests to replicas without an answer
	copyQueue []*flight      // the timers to be read from any replica, in order
	reads     turns[*flight] // from the leader

	settlements
}

// queued returns the number of timers that wait to be read.
func (t *timers) queued() int { return len(t.copyQueue) + t.reads.waiting }

func newTimers(l *role.Lane) *timers {
	return &timers{
		lane: l, lastSets: make(map[string]*flight), reads: newTurns[*flight](maxLeaderReads),
		settlements: settlements{
			queue: newTurns[*settlement](maxRemovals), retries: wheel.New[*settlement](),
			required: make(map[*settlement]struct{}),
		},
	}
}

// supersede decides about a pending timer that was replaced or cancelled, if it is on the wheel. In other places, its
// next decision considers the replacement. Supersede reports whether it has queued the removal of the timer's own
// entry.
func (w *worker) supersede(f *flight) (removed bool) {
	if f.sent != nil || !w.flights.removeFromWheel(f) {
		return false
	}
	w.apply(f, nextStep(w.plan, moment{}, f), moment{}) // the step does not depend on the time
	return f.timer.Withdrawn()
}

// forgetTimer removes the message of a timer from lastSets, and frees the memory of its body.
func (w *worker) forgetTimer(f *flight) {
	if t := w.timers; t.lastSets[f.timer.Subject] == f {
		delete(t.lastSets, f.timer.Subject)
	}
	w.unload(f)
}
