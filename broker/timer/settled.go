package timer

import (
	"sync"
	"time"
)

// maxSettled bounds what Settled remembers, at some 50 bytes for each round.
const maxSettled = 200_000

// Settled remembers the rounds before which this process has settled those of the same series, so that JetStream is not
// asked for that. The zero Settled is ready. It is safe for concurrent use.
type Settled struct {
	mu sync.Mutex        // guards by
	by map[uint64]before // by the generation of the round
}

// before is what came before a round.
type before struct {
	at    int64 // Unix time in nanoseconds; when the entry was stored in place of which the round's is
	alone bool  // nothing is left of it
}

// Note notes that the round with an entry of a time is settled, as those before it are, and that the next one has the
// generation next. Alone says that nothing is left before that one. Beyond a bound, any other round is forgotten.
func (s *Settled) Note(generation uint64, at time.Time, next uint64, alone bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by == nil {
		s.by = make(map[uint64]before)
	}
	delete(s.by, generation)
	if len(s.by) >= maxSettled {
		for other := range s.by {
			delete(s.by, other)
			break
		}
	}
	s.by[next] = before{at.UnixNano(), alone}
}

// Before reports whether the rounds before a generation are known to be settled, and whether nothing is left before it.
// At is when the entry was stored in place of which the generation was: it tells two histories of a stream apart.
func (s *Settled) Before(generation uint64, at time.Time) (settled, alone bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.by[generation]
	settled = ok && known.at == at.UnixNano()
	return settled, settled && known.alone
}
