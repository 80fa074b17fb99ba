package lease

import (
	"encoding/json"
	"time"

	"github.com/nats-io/nats.go"
)

// call is a message from an instance to all others. No stream stores it. A call announces a change of the table, asks
// which instances are alive, or answers that question. It proves that its sender is alive, even if a client's message
// hides the sender's counter. A call also lists the sender's lanes: while the stream is unusable, the instances divide
// the lanes by these lists.
type call struct {
	ID       string `json:"id"`
	Beat     uint64 `json:"beat"`             // the sender's counter
	Question bool   `json:"ask,omitempty"`    // every live instance must answer
	Answer   bool   `json:"answer,omitempty"` // the answer to a question; it announces no change
	HasTable bool   `json:"knows,omitempty"`  // the sender has read or created a valid table

	// OwnedLanes has the epoch of each lane that the sender owns; zero for a lane that it took in an outage.
	OwnedLanes    map[string]uint64 `json:"owns,omitempty"`
	EligibleLanes []string          `json:"wants,omitempty"` // the lanes that the sender can own
}

// lastCall is the last call of another instance, with the time of its arrival.
type lastCall struct {
	call
	at time.Time
}

// receive records a call of another instance. It runs on a goroutine of nats.go.
func (s *Shared) receive(m *nats.Msg) {
	if !s.store.trusts(m.Subject, m.Data, m.Header) {
		return
	}
	var c call
	if json.Unmarshal(m.Data, &c) != nil {
		c = call{} // an older broker's call has another encoding, and only makes this instance read the table
	}
	if c.ID == s.self.id {
		return
	}
	now := time.Now()
	s.callState.last.Store(int64(now.Sub(s.self.base)))
	mustRead := !c.Answer
	if c.ID != "" {
		s.mu.Lock()
		previous, known := s.state.calls[c.ID]
		if known && c.Beat <= previous.Beat { // a repeated or older call
			s.mu.Unlock()
			return
		}
		s.state.calls[c.ID] = lastCall{call: c, at: now}
		s.mu.Unlock()
		mustRead = mustRead || !known || now.Sub(previous.at) > livenessTimeout
	}
	if c.HasTable {
		s.callState.lastInformed.Store(int64(now.Sub(s.self.base)))
	}
	if c.Question {
		s.callState.question.Store(true)
	}
	if mustRead {
		s.wake()
	}
}

// takeCalls records the senders of the received calls as alive, if they are in the table, and drops old calls. If an
// instance has asked which instances are alive, takeCalls answers.
func (s *Shared) takeCalls(now time.Time) {
	s.mu.Lock()
	for id, c := range s.state.calls {
		if now.Sub(c.at) > callLifetime {
			delete(s.state.calls, id)
			continue
		}
		if _, ok := s.view.table.Instances[id]; ok {
			s.view.liveness.record(id, c.Beat, true, c.at)
		}
	}
	s.mu.Unlock()
	if s.callState.question.Swap(false) {
		s.call(call{Answer: true})
	}
}

// announce sends a call that makes the other instances read the table.
func (s *Shared) announce() { s.call(call{}) }

// ask asks which instances are alive, at most once per beatInterval.
func (s *Shared) ask(now time.Time) {
	if now.Sub(s.rounds.askedAt) >= beatInterval {
		s.rounds.askedAt = now
		s.call(call{Question: true})
	}
}

// call raises this instance's counter, adds the counter, the id and the lanes of this instance to c, and sends c.
func (s *Shared) call(c call) {
	s.rounds.counter++
	c.ID, c.Beat, c.HasTable, c.OwnedLanes = s.self.id, s.rounds.counter, s.view.hasTable, make(map[string]uint64)
	s.mu.Lock()
	for lane, l := range s.state.leases {
		c.OwnedLanes[lane] = l.epoch
	}
	c.EligibleLanes = s.eligibleLanes()
	s.mu.Unlock()
	body, err := json.Marshal(c)
	if err == nil {
		err = s.store.send(body)
	}
	if err != nil {
		s.log.Debug("cannot call the other instances", "err", err)
	}
}
