package lease

import "time"

// liveness infers the live instances from their counters and calls. Its times are by this instance's clock.
type liveness struct {
	seen map[string]sighting // by instance
	// success is the start of the last successful round, which showed everything stored before it. It is zero if a later
	// round failed. Then the time since a counter's last change is unknown, because the other instance may have been
	// unable to beat, too.
	success time.Time
}

// sighting is the last known counter of another instance.
type sighting struct {
	counter uint64
	first   time.Time // when this value was first read; if rounds failed later, the time of the next good round
	changed time.Time // when a change of the counter was last read
	alive   bool      // a change was read, or a call arrived
}

// record records a counter. It ignores a counter that has not risen: a client may have stored an old counter again.
// Called is true if the counter comes from a call.
func (l *liveness) record(id string, counter uint64, called bool, now time.Time) {
	s, known := l.seen[id]
	if known && counter <= s.counter {
		return
	}
	changed := s.changed
	if called || !l.success.IsZero() { // otherwise, the time of the change is unknown
		changed = now
	}
	l.seen[id] = sighting{counter: counter, first: now, changed: changed, alive: s.alive || s.counter > 0 || called}
}

// recordSuccess records the success of a round that began at sent. The round showed everything stored before sent.
// Others are the other instances of the table.
func (l *liveness) recordSuccess(sent, now time.Time, others []string) {
	if l.success.IsZero() {
		for id, s := range l.seen {
			s.first = now
			l.seen[id] = s
		}
	}
	l.success = sent
	for _, id := range others {
		if _, known := l.seen[id]; !known {
			l.seen[id] = sighting{first: now}
		}
	}
}

// recordFailure records the failure of a round.
func (l *liveness) recordFailure() { l.success = time.Time{} }

// unchangedFor returns the time for which an instance's counter has certainly not changed, although the instance could
// have raised it.
func (l *liveness) unchangedFor(id string) time.Duration {
	s, known := l.seen[id]
	if !known || l.success.IsZero() {
		return 0
	}
	return l.success.Sub(s.first)
}

// everAlive reports whether an instance has ever shown a sign of life.
func (l *liveness) everAlive(id string) bool { return l.seen[id].alive }

// alive reports whether an instance has shown a sign of life within lostAfter.
func (l *liveness) alive(id string, now time.Time) bool {
	s := l.seen[id]
	return s.alive && now.Sub(s.changed) < lostAfter
}
