package lease

import "time"

// roster judges which instances live, by their counters alone. Times are the observer's own.
type roster struct {
	seen map[string]sighting
	// good is when the last round was begun that showed everything stored before it; zero when none did since things went
	// wrong. Then nothing is known about how long a counter stood still, because its owner could not beat either.
	good time.Time
}

type sighting struct {
	counter uint64
	since   time.Time // when the counter was first read as it is, or as soon as things went well again
	moved   time.Time // when it was last seen to move
	lives   bool      // it was ever seen to move, or heard
}

// saw takes in a counter. One that does not rise is no news, whoever put it there again. Heard means that its owner has
// just said it.
func (r *roster) saw(id string, counter uint64, heard bool, now time.Time) {
	s, known := r.seen[id]
	if known && counter <= s.counter {
		return
	}
	moved := s.moved
	if heard || !r.good.IsZero() { // otherwise it may be long ago
		moved = now
	}
	r.seen[id] = sighting{counter: counter, since: now, moved: moved, lives: s.lives || s.counter > 0 || heard}
}

// round ends one that was begun at sent and has shown everything stored before. Others are those who should be there.
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

// failed says that a round was not answered.
func (r *roster) failed() { r.good = time.Time{} }

// still is how long an instance's counter is known to have stood still while others could move.
func (r *roster) still(id string) time.Duration {
	s, known := r.seen[id]
	if !known || r.good.IsZero() {
		return 0
	}
	return r.good.Sub(s.since)
}

func (r *roster) lives(id string) bool { return r.seen[id].lives }

// livesNow reports whether an instance gave a sign of life lately.
func (r *roster) livesNow(id string, now time.Time) bool {
	s := r.seen[id]
	return s.lives && now.Sub(s.moved) < lostAfter
}

func (r *roster) forget(id string) { delete(r.seen, id) }
