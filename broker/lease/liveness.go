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
	counter uint64
	// firstRead serves unchangedFor: when this counter was first read or, if a later round failed, when a round succeeded
	// again.
	firstRead time.Time
	// changedAt serves alive: the time of the last sign of life, a call or a raised counter. Counters that were read while
	// lastSuccess was zero do not count.
	changedAt time.Time
	everAlive bool // a raised counter was read, or a call arrived, at any time
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
		counter: counter, firstRead: now, changedAt: changedAt, everAlive: s.everAlive || s.counter > 0 || called,
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
func (l *liveness) everAlive(id string) bool { return l.sightings[id].everAlive }

// alive reports whether an instance has shown a sign of life within livenessTimeout.
func (l *liveness) alive(id string, now time.Time) bool {
	s := l.sightings[id]
	return s.everAlive && now.Sub(s.changedAt) < livenessTimeout
}
