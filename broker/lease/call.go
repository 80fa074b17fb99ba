package lease

import (
	"encoding/json"
	"time"

	"github.com/nats-io/nats.go"
)

// peerTimeout is the time after which an instance that calls no more counts as gone. Instances that stand by call in
// each turn.
const peerTimeout = 5 * time.Second

// call is a message from an instance to all others. No stream stores it. It shows that its sender is alive and, with
// its seal, that a client has not written it. In an outage of the stream, calls choose the active instance.
type call struct {
	Instance
	Beat  uint64 `json:"beat"`  // rises with each call of the sender
	Epoch uint64 `json:"epoch"` // the highest epoch that the sender knows
	// Acts is set if the sender has a lease. Provisional is set if it took the lease in an outage, without a claim.
	Acts        bool `json:"acts,omitempty"`
	Provisional bool `json:"provisional,omitempty"`
	Waits       bool `json:"waits,omitempty"`  // the sender stands by
	Unable      bool `json:"unable,omitempty"` // see Config.Able
	Question    bool `json:"ask,omitempty"`    // every live instance must answer
	Left        bool `json:"left,omitempty"`   // the sender ends
}

// caller is another instance: its last call, with the time of the arrival.
type caller struct {
	call
	at time.Time
}

// receive records a call of another instance. It runs on a goroutine of nats.go.
func (m *Member) receive(msg *nats.Msg) {
	var c call
	if !m.store.trusts(msg.Subject, msg.Data, msg.Header) || json.Unmarshal(msg.Data, &c) != nil ||
		c.ID == "" || c.ID == m.self.ID {
		return
	}
	m.mu.Lock()
	previous, known := m.state.peers[c.ID]
	if known && c.Beat <= previous.Beat { // a repeated or older call
		m.mu.Unlock()
		return
	}
	m.state.peers[c.ID] = caller{call: c, at: time.Now()}
	m.state.asked = m.state.asked || c.Question
	changed := !known || c.Acts != previous.Acts || c.Left || c.Question || c.Unable != previous.Unable
	m.mu.Unlock()
	if changed {
		m.wake()
	}
}

// livePeers returns the last calls of the instances that are alive, and forgets the other instances.
func (m *Member) livePeers(now time.Time) []caller {
	m.mu.Lock()
	defer m.mu.Unlock()
	var live []caller
	for id, p := range m.state.peers {
		switch {
		case now.Sub(p.at) >= time.Minute: // until then, a repeated call is recognized
			delete(m.state.peers, id)
		case now.Sub(p.at) < peerTimeout && !p.Left:
			live = append(live, p)
		}
	}
	return live
}

// callPeers calls the other instances if that is due: after a question, after a change of this instance's state, and in
// each interval while this instance stands by or others do. Two instances that ask each other do so once in each
// interval.
func (m *Member) callPeers(now time.Time, peers []caller, question bool) {
	m.mu.Lock()
	answers := m.state.asked
	m.state.asked = false
	waits := m.state.waiter != nil
	m.mu.Unlock()
	question = question && now.Sub(m.beats.askedAt) >= beatInterval
	if question {
		m.beats.askedAt = now
	}
	if answers || question || (waits || len(peers) > 0) && now.Sub(m.beats.calledAt) >= beatInterval {
		m.call(call{Question: question})
	}
}

// call adds the id and the state of this instance to c, and sends c.
func (m *Member) call(c call) {
	m.beats.counter++
	m.beats.calledAt = time.Now()
	c.Instance, c.Beat, c.Epoch = m.self, m.beats.counter, m.view.claim.Epoch
	m.mu.Lock()
	if l := m.state.lease; l != nil {
		c.Acts, c.Provisional = true, l.epoch == 0
	}
	c.Waits = m.state.waiter != nil && !c.Left
	m.mu.Unlock()
	c.Unable = m.cfg.Able(!c.Acts) != nil
	body, err := json.Marshal(c)
	if err == nil {
		err = m.store.send(body)
	}
	if err != nil {
		m.log.Debug("cannot call the other instances", "err", err)
	}
}
