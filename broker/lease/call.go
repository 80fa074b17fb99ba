package lease

import (
	"encoding/json"
	"time"

	"github.com/nats-io/nats.go"
)

// word is what an instance says on the plain subject. It says that there is something to see, and that the instance
// lives and what it has: the latter counts while the bucket cannot be used, and where somebody hides a counter in it.
type word struct {
	ID     string            `json:"id"`
	Beat   uint64            `json:"beat"`             // the counter that is beaten, too
	Ask    bool              `json:"ask,omitempty"`    // whoever lives is to say so
	Answer bool              `json:"answer,omitempty"` // and nothing else
	Knows  bool              `json:"knows,omitempty"`  // a good table, and will write it back
	Owns   map[string]uint64 `json:"owns,omitempty"`   // lanes, with the epoch of the claim; zero without the table
	Wants  []string          `json:"wants,omitempty"`  // lanes it would work
}

// spoken is what another instance said last.
type spoken struct {
	word
	at time.Time
}

// hear takes in what another instance says. It is called on nats.go's goroutine.
func (s *Shared) hear(m *nats.Msg) {
	if !s.bucket.sealed(m.Subject, m.Data, m.Header) {
		return
	}
	var w word
	if json.Unmarshal(m.Data, &w) != nil {
		w = word{} // an older broker's
	}
	if w.ID == s.id {
		return
	}
	now := time.Now()
	s.heard.Store(int64(now.Sub(s.base)))
	news := !w.Answer
	if w.ID != "" {
		s.mu.Lock()
		before, known := s.spoken[w.ID]
		if known && w.Beat <= before.Beat { // somebody repeats it
			s.mu.Unlock()
			return
		}
		s.spoken[w.ID] = spoken{word: w, at: now}
		s.mu.Unlock()
		news = news || !known || now.Sub(before.at) > lostAfter
	}
	if w.Knows {
		s.knower.Store(int64(now.Sub(s.base)))
	}
	if w.Ask {
		s.asking.Store(true)
	}
	if news {
		s.wake()
	}
}

// listen makes use of what was said since the last time.
func (s *Shared) listen(now time.Time) {
	s.mu.Lock()
	for id, w := range s.spoken {
		if now.Sub(w.at) > forgetAfter {
			delete(s.spoken, id)
			continue
		}
		if _, there := s.table.Instances[id]; there {
			s.roster.saw(id, w.Beat, true, w.at)
		}
	}
	s.mu.Unlock()
	if s.asking.Swap(false) {
		s.say(word{Answer: true})
	}
}

// call says that there is something to see.
func (s *Shared) call() { s.say(word{}) }

// ask wants to know who lives, at most once for each beat.
func (s *Shared) ask(now time.Time) {
	if now.Sub(s.asked) >= beatEvery {
		s.asked = now
		s.say(word{Ask: true})
	}
}

func (s *Shared) say(w word) {
	s.beats++
	w.ID, w.Beat, w.Knows, w.Owns = s.id, s.beats, s.known, make(map[string]uint64)
	s.mu.Lock()
	for lane, l := range s.leases {
		w.Owns[lane] = l.epoch
		if l.assumed {
			w.Owns[lane] = 0
		}
	}
	w.Wants = s.wants()
	s.mu.Unlock()
	body, err := json.Marshal(w)
	if err == nil {
		err = s.bucket.say(body)
	}
	if err != nil {
		s.log.Debug("calling the other instances", "err", err)
	}
}
