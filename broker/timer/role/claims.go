package role

import "sync"

// claims lets only one alarm of this process at a time fire a generation, so that a timer with two markers is delivered
// once. These claims are in memory, unlike the published claim of package timer. The zero claims is ready to use, and
// safe for concurrent use.
type claims struct {
	mu        sync.Mutex          // guards the fields below
	holders   map[uint64]*Alarm   // the alarms that have a claim, by generation
	unsettled map[*Alarm]struct{} // the holders whose message may need a delivery; the other holders only remove entries
}

// take claims the firing of the alarm's timer, and reports whether the alarm has the claim now.
func (c *claims) take(a *Alarm) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.holders == nil {
		c.holders, c.unsettled = make(map[uint64]*Alarm), make(map[*Alarm]struct{})
	}
	if holder := c.holders[a.Generation]; holder != nil {
		return holder == a
	}
	c.holders[a.Generation], c.unsettled[a] = a, struct{}{}
	return true
}

// settle records that the timer's message needs no further delivery, if the alarm has the claim.
func (c *claims) settle(a *Alarm) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.unsettled, a)
}

// release releases the claim, if the alarm has it.
func (c *claims) release(a *Alarm) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.unsettled, a)
	if c.holders[a.Generation] == a {
		delete(c.holders, a.Generation)
	}
}

// Firings returns the number of claims that are neither settled nor released.
func (c *claims) Firings() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.unsettled)
}
