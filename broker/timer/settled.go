package timer

import (
	"sync"
	"time"
)

// maxSettled is the maximum number of rounds in Settled, at some 50 bytes for each.
const maxSettled = 200_000

// Settled holds the rounds whose earlier rounds this process has settled, so that it need not ask JetStream about them.
// The zero Settled is ready. It is safe for concurrent use.
type Settled struct {
	mu sync.Mutex        // guards by
	by map[uint64]before // by the generation of the round
}

// before describes the entries before a round.
type before struct {
	at    int64 // Unix time in nanoseconds; when the entry was stored that the round's entry replaced
	alone bool  // no entry is left before the round's
}

// Note notes that a round is settled, whose entry was stored at a time, and that the next round has the generation
// next. Then all earlier rounds are settled, too. Alone says that no entry is left before the next round's. Beyond a
// bound, an arbitrary other round is forgotten.
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

// Before reports whether the rounds before a generation are known to be settled, and whether no entry is left before
// it. At is when the entry was stored that the generation replaced: it distinguishes two histories of a stream.
func (s *Settled) Before(generation uint64, at time.Time) (settled, alone bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.by[generation]
	settled = ok && known.at == at.UnixNano()
	return settled, settled && known.alone
}
