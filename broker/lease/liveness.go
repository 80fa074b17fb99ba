package lease

import "time"

// liveness infers the live instances from their counters and calls. Its times are by this instance's clock.
type liveness struct {
	sightings map[string]sighting // by instance
	// lastSuccess is the start of the last successful round, which showed all messages stored before its start. It is
	// zero if a later round failed. Then the time since a counter's last change is unknown, because the other instance
	// may also have been unable to beat.
	lastSuccess time.Time
}

// sighting is the last known counter of another instance.
type sighting struct {
	counter   uint64
	firstRead time.Time // when this value was first read; if rounds failed since then, the time of the next good round
	changedAt time.Time // when a change of the counter was last read
	alive     bool      // a change was read, or a call arrived
}

// record records a counter. It ignores a counter that has not risen, because a client may have stored an old counter
// again. Called is true if the counter comes from a call.
func (l *liveness) record(id string, counter uint64, called bool, now time.Time) {
	s, known := l.sightings[id]
	if known && counter <= s.counter {
		return
	}
	changedAt := s.changedAt
	if called || !l.lastSuccess.IsZero() { // otherwise, the time of the change is unknown
		changedAt = now
	}
	l.sightings[id] = sighting{
		counter: counter, firstRead: now, changedAt: changedAt, alive: s.alive || s.counter > 0 || called,
	}
}

// recordSuccess records the success of a round that began at start. Others are the other instances of the table.
func (l *liveness) recordSuccess(start, now time.Time, others []string) {
	if l.lastSuccess.IsZero() {
		for id, s := range l.sightings {
			s.firstRead = now
			l.sightings[id] = s
		}
	}
	l.lastSuccess = start
	for _, id := range others {
		if _, known := l.sightings[id]; !known {
			l.sightings[id] = sighting{firstRead: now}
		}
	}
}

func (l *liveness) recordFailure() { l.lastSuccess = time.Time{} }

// unchangedFor returns the time for which an instance's counter has certainly not changed, although a live instance
// could have raised it.
func (l *liveness) unchangedFor(id string) time.Duration {
	s, known := l.sightings[id]
	if !known || l.lastSuccess.IsZero() {
		return 0
	}
	return l.lastSuccess.Sub(s.firstRead)
}

// everAlive reports whether an instance has ever shown a sign of life.
func (l *liveness) everAlive(id string) bool { return l.sightings[id].alive }

// alive reports whether an instance has shown a sign of life within livenessTimeout.
func (l *liveness) alive(id string, now time.Time) bool {
	s := l.sightings[id]
	return s.alive && now.Sub(s.changedAt) < livenessTimeout
}
