package role

import "sync"

// maxSettled is the maximum number of rounds in settledRounds. Each takes some 50 bytes.
const maxSettled = 200_000

// settledRounds holds the rounds whose earlier rounds this process has settled. For such a round, the process need not
// read the earlier rounds from JetStream. The zero settledRounds is ready to use, and safe for concurrent use.
type settledRounds struct {
	mu     sync.Mutex                // guards rounds
	rounds map[uint64]earlierEntries // by generation
}

// earlierEntries describes the entries before the entry of a round.
type earlierEntries struct {
	at             int64 // when the entry that the round replaced was stored; Unix time in nanoseconds
	earlierRemoved bool  // no entry is left before the round's entry
}

// removed records that the entry of a round was removed, if the series has a next round. EarlierRemoved is true if no
// entry is left before the entry of the next round. If maxSettled is reached, removed forgets an arbitrary other round.
func (s *settledRounds) removed(a *Alarm, earlierRemoved bool) {
	if a.next == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rounds == nil {
		s.rounds = make(map[uint64]earlierEntries)
	}
	delete(s.rounds, a.Generation)
	if len(s.rounds) >= maxSettled {
		for generation := range s.rounds {
			delete(s.rounds, generation)
			break
		}
	}
	s.rounds[a.next] = earlierEntries{a.At.UnixNano(), earlierRemoved}
}

// recall records in the alarm of a round if this process has settled the earlier rounds. If the stream was deleted or
// restored in the meantime, the same generation may belong to another entry. So recall also compares the times at which
// the replaced entry was stored.
func (s *settledRounds) recall(a *Alarm) {
	s.mu.Lock()
	earlier, ok := s.rounds[a.Generation]
	s.mu.Unlock()
	if ok && earlier.at == a.replacedAt.UnixNano() {
		a.settleEarlierRounds(earlier.earlierRemoved)
	}
}
