package engine

import "delaybroker/broker/timer/role"

// timers holds the named timers that a lane has in memory. The lane's loop owns it. See package role.
type timers struct {
	stream *role.Stream
	latest map[string]*flight       // by subject: the sets that the timers' lane has read
	mine   map[*role.Alarm]struct{} // the alarms that this lane fires
	loaded int                      // bytes of bodies that were read for their markers

	copying, looking   int       // requests to JetStream in progress
	uncopied, unlooked []*flight // to be read, in order: from any replica, and from the leader

	settlements
}

func newTimers(s *role.Stream) *timers {
	return &timers{
		stream: s, latest: make(map[string]*flight), mine: make(map[*role.Alarm]struct{}), settlements: newSettlements(),
	}
}

// supersede drops a timer that was replaced or cancelled, unless its firing is decided or it has a request in progress:
// the answer will show the replacement.
func (w *worker) supersede(f *flight) {
	if f.timer.Supersede() && f.sent == nil && w.flights.takeOff(f) {
		f.timer.Withdraw()
		w.remove(f)
	}
}

// forgetTimer drops the message of a timer.
func (w *worker) forgetTimer(f *flight) {
	if t := w.timers; t.latest[f.timer.Subject] == f {
		delete(t.latest, f.timer.Subject)
	}
	w.unload(f)
}

// endAlarm gives up the firing of a timer.
func (w *worker) endAlarm(a *role.Alarm) {
	t := w.timers
	if _, ok := t.mine[a]; ok {
		t.stream.Release(a)
		delete(t.mine, a)
	}
	a.End()
}

// release gives up all firings.
func (t *timers) release() {
	for a := range t.mine {
		t.stream.Release(a)
	}
	t.mine = nil
}
