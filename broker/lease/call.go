package lease

import (
	"encoding/json"
	"time"

	"github.com/nats-io/nats.go"
)

// call is a message between instances that no stream stores. It announces a change of the table, asks which instances
// are alive, or answers that question. A call proves that its sender is alive, even if a client's message hides the
// sender's counter. A call also lists the sender's lanes: while the stream is unusable, the instances divide the lanes
// by these lists.
type call struct {
	ID     string            `json:"id"`
	Beat   uint64            `json:"beat"`             // the sender's counter
	Ask    bool              `json:"ask,omitempty"`    // a question: every live instance must answer
	Answer bool              `json:"answer,omitempty"` // the answer to a question; the table has not changed
	Knows  bool              `json:"knows,omitempty"`  // the sender has read or created a valid table
	Owns   map[string]uint64 `json:"owns,omitempty"`   // the sender's lanes, with the claims' epochs; zero for no claim
	Wants  []string          `json:"wants,omitempty"`  // the lanes that the sender can own
}

// lastCall is the last call of another instance, with the time of its arrival.
type lastCall struct {
	call
	at time.Time
}

// receive records a call of another instance. It runs on a goroutine of nats.go.
func (s *Shared) receive(m *nats.Msg) {
	if !s.store.sealed(m.Subject, m.Data, m.Header) {
		return
	}
	var c call
	if json.Unmarshal(m.Data, &c) != nil {
		c = call{} // an older broker sends another encoding
	}
	if c.ID == s.self.id {
		return
	}
	now := time.Now()
	s.received.call.Store(int64(now.Sub(s.self.base)))
	mustRead := !c.Answer
	if c.ID != "" {
		s.mu.Lock()
		before, known := s.local.calls[c.ID]
		if known && c.Beat <= before.Beat { // a repeated call
			s.mu.Unlock()
			return
		}
		s.local.calls[c.ID] = lastCall{call: c, at: now}
		s.mu.Unlock()
		mustRead = mustRead || !known || now.Sub(before.at) > lostAfter
	}
	if c.Knows {
		s.received.informed.Store(int64(now.Sub(s.self.base)))
	}
	if c.Ask {
		s.received.question.Store(true)
	}
	if mustRead {
		s.wake()
	}
}

// takeCalls records the senders of the received calls as alive, and drops old calls. If an instance has asked which
// instances are alive, takeCalls answers.
func (s *Shared) takeCalls(now time.Time) {
	s.mu.Lock()
	for id, c := range s.local.calls {
		if now.Sub(c.at) > forgetAfter {
			delete(s.local.calls, id)
			continue
		}
		if _, there := s.view.table.Instances[id]; there {
			s.view.liveness.record(id, c.Beat, true, c.at)
		}
	}
	s.mu.Unlock()
	if s.received.question.Swap(false) {
		s.call(call{Answer: true})
	}
}

// announce sends a call that makes the other instances read the table.
func (s *Shared) announce() { s.call(call{}) }

// ask asks which instances are alive, at most once per beatInterval.
func (s *Shared) ask(now time.Time) {
	if now.Sub(s.rounds.asked) >= beatInterval {
		s.rounds.asked = now
		s.call(call{Ask: true})
	}
}

// call adds this instance's id, counter and lanes to a call, and sends the call.
func (s *Shared) call(c call) {
	s.rounds.beats++
	c.ID, c.Beat, c.Knows, c.Owns = s.self.id, s.rounds.beats, s.view.known, make(map[string]uint64)
	s.mu.Lock()
	for lane, l := range s.local.leases {
		c.Owns[lane] = l.epoch
	}
	c.Wants = s.wants()
	s.mu.Unlock()
	body, err := json.Marshal(c)
	if err == nil {
		err = s.store.send(body)
	}
	if err != nil {
		s.log.Debug("cannot call the other instances", "err", err)
	}
}
