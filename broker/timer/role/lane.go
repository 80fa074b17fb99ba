package role

import (
	"delaybroker/broker/message"
	"delaybroker/broker/timer/entry"
)

// Lane has the alarms of a lane. Only the worker's loop uses it, except for Pass.
type Lane struct {
	*Stream
	Sweep                       // of the timers' lane
	MaxSize int                 // of the timers' stream, max_msg_size; zero for none
	runs    runs                // in the timers' lane: the runs of debounced sets
	held    map[*Alarm]struct{} // the firings that this lane alone, of all lanes of the process, may store
}

// Lane returns the Lane of a worker. The worker must call Close at its end.
func (s *Stream) Lane() *Lane {
	return &Lane{Stream: s, runs: make(runs), held: make(map[*Alarm]struct{})}
}

// Close releases the claims of all alarms in memory.
func (l *Lane) Close() {
	for a := range l.held {
		l.release(a)
	}
	l.held = nil
}

// Claims returns the number of alarms in memory that have claimed the firing of their timer.
func (l *Lane) Claims() int { return len(l.held) }

// take claims the firing of an alarm's timer, and reports whether the alarm has the claim now.
func (l *Lane) take(a *Alarm) bool {
	if !l.claims.take(a) {
		return false
	}
	l.held[a] = struct{}{}
	return true
}

// leave records that an alarm leaves memory.
func (l *Lane) leave(a *Alarm) {
	if _, ok := l.held[a]; ok {
		l.release(a)
		delete(l.held, a)
	}
	l.runs.leave(a)
}

// MarkerAlarm returns the alarm of a marker that a level's lane has read. The caller must have verified the marker's
// seal.
func (l *Lane) MarkerAlarm(m entry.Marker) *Alarm {
	id, err := message.ParseID(m.ID)
	if err != nil {
		panic("bug: a sealed marker has an invalid id: " + m.ID)
	}
	a := &Alarm{
		Subject: m.Timer(l.Policy.Names), Generation: id.Sequence, At: id.At, Size: m.Size,
		lane: l, key: m.Key, before: cleared,
	}
	if m.RunStart != 0 {
		a.run = &run{start: runStart{set: m.RunStart}}
	}
	return a
}

// Arrival is an entry that the timers' lane has read.
type Arrival struct {
	Kind     entry.Kind
	Request  message.Request
	Problem  *message.Problem // the reason why the entry is to become a dead letter; nil for none
	Alarm    *Alarm
	Replaces bool // the entry replaces the previous set, which was pending: it needs another decision
}

// Read records an entry that the timers' lane has read. Size is its size in the stream, without its subject. Previous
// is the alarm of the latest set of its subject before the entry; nil if that set is not in memory. Owned reports
// whether this instance was active when the entry was stored.
//
// An entry that is sealed with an unknown key, and that was stored before this instance was active, stays in the
// stream. The operator may have removed the key too early, and a dead letter would end the series. The sweep counts
// such entries. After the key is set again, the sweep finds their timers.
//
// Of the firings, the worker needs only those that were stored before this instance was active. A crash may have
// come between the removal of the set and the removal of the firing, or a client may have published over the firing.
// The worker examines such a firing. The sweep would find it too, but so late that the target's stream would not
// recognise a duplicate.
func (l *Lane) Read(in message.Incoming, size int, previous *Alarm, owned bool) Arrival {
	if in.KeysCurrent && !owned { // the keys were read again, and the key is still unknown
		return Arrival{Kind: entry.Unproven, Alarm: &Alarm{Subject: in.Subject, lane: l, state: settled}}
	}
	e := entry.Parse(l.Policy, in)
	if !e.Debounced() {
		l.runs.end(in.Subject, in.Sequence)
	}
	read := Arrival{Kind: e.Kind, Request: e.Request}
	if e.Kind == entry.Fired && !owned && (previous == nil || previous.Generation != e.Generation) {
		if id, err := message.ParseID(e.Request.ID); err == nil {
			read.Alarm = &Alarm{
				Subject: in.Subject, Generation: e.Generation, At: id.At, Size: len(in.Data), lane: l, state: doubt,
			}
			return read
		}
	}
	a := l.entryAlarm(e, in)
	read.Alarm = a
	switch e.Kind {
	case entry.Set:
		read.Request.Due = l.runs.join(a, previous, e, owned)
		if read.Problem = e.Problem; e.Problem == nil && e.Replaced == 0 && l.MaxSize > 0 && size > l.MaxSize-l.Reserve {
			read.Problem = a.tooLargeToFire()
		}
	case entry.Cancel, entry.Unproven:
		read.Problem = e.Problem
	} // an entry that a broker wrote never becomes a dead letter
	if previous != nil {
		read.Replaces = previous.follow(e)
	}
	l.noteDue(l.deadline(e, in.Subject, in.At))
	if l.mustReseal(e, in) {
		l.noteDue(in.At) // a sweep pass must reseal the entry
	}
	return read
}

// entryAlarm returns the alarm of an entry that the timers' lane has read.
func (l *Lane) entryAlarm(e entry.Entry, in message.Incoming) *Alarm {
	a := &Alarm{
		Subject: in.Subject, Generation: in.Sequence, At: in.At, Size: len(in.Data),
		lane: l, key: l.Policy.Names.Parse(in.Subject).Token, state: settled,
	}
	if e.First {
		a.before = noneBefore
	}
	a.takeEntry(e)
	switch e.Kind {
	case entry.Set, entry.Unproven: // the worker examines an Unproven entry, whose seal has an unknown key, later
		a.state = pending
	case entry.Paused:
		a.removal = removal{entry: in.Sequence, reach: below}
	case entry.Cancel:
		a.removal = removal{entry: in.Sequence, cancelled: e.Cancelled}
		if l.history(in.Subject) > 0 {
			a.removal.reach = below
		}
	} // a firing, an outcome or the cursor: nothing is to be done here
	if e.Kind != entry.Paused && !entry.ValidSubject(l.Policy, in.Subject) {
		a.removal.reach = onlyThis
	}
	return a
}
