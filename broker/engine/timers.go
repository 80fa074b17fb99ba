package engine

import "delaybroker/broker/timer/role"

// timers holds the named timers that a lane has in memory. Only the lane's loop uses it. See package role.
type timers struct {
	stream *role.Stream
	latest map[string]*flight       // the last set of each subject, if it is in memory; only in the timers' lane
	mine   map[*role.Alarm]struct{} // the alarms whose firings this lane has claimed
	loaded int                      // bytes of bodies that were read for markers

	copying, looking   int       // number of reads in progress: from any replica, and from the leader
	uncopied, unlooked []*flight // timers to be read, in order: from any replica, and from the leader

	settlements
}

func newTimers(s *role.Stream) *timers {
	return &timers{
		stream: s, latest: make(map[string]*flight), mine: make(map[*role.Alarm]struct{}), settlements: newSettlements(),
	}
}

// supersede removes a timer that was replaced or cancelled from memory, unless it has fired or a request about it is in
// progress. The answer to the request will show the replacement. It reports whether the entry of the timer is to be
// removed.
func (w *worker) supersede(f *flight) (removed bool) {
	if !f.timer.Supersede() || f.sent != nil || !w.flights.takeOff(f) {
		return false
	}
	f.timer.Withdraw()
	w.remove(f)
	return f.timer.Entry == f.Sequence
}

// forgetTimer removes the message of a timer from timers.
func (w *worker) forgetTimer(f *flight) {
	if t := w.timers; t.latest[f.timer.Subject] == f {
		delete(t.latest, f.timer.Subject)
	}
	w.unload(f)
}

// endAlarm releases the claim on the firing of a timer, and ends the alarm.
func (w *worker) endAlarm(a *role.Alarm) {
	t := w.timers
	if _, ok := t.mine[a]; ok {
		t.stream.Release(a)
		delete(t.mine, a)
	}
	a.End()
}

// release releases all claims.
func (t *timers) release() {
	for a := range t.mine {
		t.stream.Release(a)
	}
	t.mine = nil
}
