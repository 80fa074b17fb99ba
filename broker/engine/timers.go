package engine

import (
	"delaybroker/broker/timer/role"
	"delaybroker/wheel"
)

// timers holds the named timers that a lane has in memory. Only the lane's loop uses it. See package role.
type timers struct {
	stream      *role.Stream
	lastSets    map[string]*flight       // by subject: the latest set, if it is in memory; only in the timers' lane
	claims      map[*role.Alarm]struct{} // the alarms that this lane alone, of all lanes of the process, may fire
	loadedBytes int                      // bytes of the bodies and headers that are in memory, or about to be read

	copyReads   int       // number of requests to replicas without an answer
	leaderReads int       // number of timers that are being read from the leader
	copyQueue   []*flight // the timers to be read from any replica, in order
	bodyQueue   []*flight // the timers whose body is in memory, to be read from the leader, in order
	leaderQueue []*flight // the other timers to be read from the leader, in order

	settlements
}

// queued returns the number of timers that wait to be read.
func (t *timers) queued() int { return len(t.copyQueue) + len(t.bodyQueue) + len(t.leaderQueue) }

func newTimers(s *role.Stream) *timers {
	return &timers{
		stream: s, lastSets: make(map[string]*flight), claims: make(map[*role.Alarm]struct{}),
		settlements: settlements{retries: wheel.New[*settlement](), required: make(map[*settlement]struct{})},
	}
}

// supersede ends the flight of a timer that was replaced or cancelled. A timer that may have fired stays in memory. A
// timer that is not on the wheel also stays, and its next decision considers the replacement. Supersede reports whether
// it has queued the removal of the timer's own entry.
func (w *worker) supersede(f *flight) (removed bool) {
	if !f.timer.Supersede() || f.sent != nil || !w.flights.removeFromWheel(f) {
		return false
	}
	f.timer.Withdraw()
	w.remove(f)
	return f.timer.Entry == f.Sequence
}

// forgetTimer removes the message of a timer from lastSets, and frees the memory of its body.
func (w *worker) forgetTimer(f *flight) {
	if t := w.timers; t.lastSets[f.timer.Subject] == f {
		delete(t.lastSets, f.timer.Subject)
	}
	w.unload(f)
}

// endAlarm releases this lane's claim on the firing of a timer, if there is one, and ends the alarm.
func (w *worker) endAlarm(a *role.Alarm) {
	t := w.timers
	if _, ok := t.claims[a]; ok {
		t.stream.Release(a)
		delete(t.claims, a)
	}
	a.End()
}

func (t *timers) release() {
	for a := range t.claims {
		t.stream.Release(a)
	}
	t.claims = nil
}
