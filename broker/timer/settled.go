package timer

import (
	"sync"
	"time"
)

// maxSettled is the maximum number of rounds in Settled. Each takes some 50 bytes.
const maxSettled = 200_000

// Settled holds the rounds whose earlier rounds this process has settled. For such a round, the process need not read
// the earlier rounds from JetStream. The zero Settled is ready to use. Settled is safe for concurrent use.
type Settled struct {
	mu sync.Mutex        // guards by
	by map[uint64]before // by the generation of the round
}

// before describes the entries before the entry of a round.
type before struct {
	at    int64 // the stored time of the entry that the round's entry replaced; Unix time in nanoseconds
	alone bool  // no entry is left before the round's entry
}

// Note records that a round is settled. All earlier rounds of the series are settled before it. At is when the round's
// entry was stored, and next is the generation of the next round. Alone reports whether no entry is left before the
// next round's entry. If Settled is full, Note forgets an arbitrary other round.
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
// the generation. At is the stored time of the entry that the generation replaced. If the stream was deleted or
// restored since, the same sequence may belong to another entry, which has another time.
func (s *Settled) Before(generation uint64, at time.Time) (settled, alone bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.by[generation]
	settled = ok && known.at == at.UnixNano()
	return settled, settled && known.alone
}
