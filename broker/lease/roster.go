package lease

import "time"

// roster infers the live instances from their counters and calls. Its times are by this instance's clock.
type roster struct {
	seen map[string]sighting
	// good is the start of the last successful round, which showed everything stored before it. It is zero if a round
	// has failed since. Then the time since a counter's last change is unknown, because its owner could not beat
	// either.
	good time.Time
}

type sighting struct {
	counter uint64
	since   time.Time // when the counter was first read with this value, or when rounds first succeeded again
	moved   time.Time // when a change was last seen
	lives   bool      // a change was seen, or a call arrived
}

// saw records a counter. It ignores a counter that has not risen: a client may have stored an old one again. Heard is
// set if a call contained the counter.
func (r *roster) saw(id string, counter uint64, heard bool, now time.Time) {
	s, known := r.seen[id]
	if known && counter <= s.counter {
		return
	}
	moved := s.moved
	if heard || !r.good.IsZero() { // otherwise the time of the change is unknown
		moved = now
	}
	r.seen[id] = sighting{counter: counter, since: now, moved: moved, lives: s.lives || s.counter > 0 || heard}
}

// round records the success of a round that began at sent. The round showed everything stored before sent. Others are
// the other instances of the table.
func (r *roster) round(sent, now time.Time, others []string) {
	if r.good.IsZero() {
		for id, s := range r.seen {
			s.since = now
			r.seen[id] = s
		}
	}
	r.good = sent
	for _, id := range others {
		if _, known := r.seen[id]; !known {
			r.seen[id] = sighting{since: now}
		}
	}
}

// failed records the failure of a round.
func (r *roster) failed() { r.good = time.Time{} }

// still returns the time for which an instance's counter has certainly not changed although its owner could raise it.
func (r *roster) still(id string) time.Duration {
	s, known := r.seen[id]
	if !known || r.good.IsZero() {
		return 0
	}
	return r.good.Sub(s.since)
}

// lives reports whether an instance has ever shown a sign of life.
func (r *roster) lives(id string) bool { return r.seen[id].lives }

// livesNow reports whether an instance has shown a sign of life within lostAfter.
func (r *roster) livesNow(id string, now time.Time) bool {
	s := r.seen[id]
	return s.lives && now.Sub(s.moved) < lostAfter
}

func (r *roster) forget(id string) { delete(r.seen, id) }
