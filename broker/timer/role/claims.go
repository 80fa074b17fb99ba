package role

import "sync"

// claims holds the claims on firings in this process, so that a timer with two markers is delivered once. The zero
// claims is ready to use, and safe for concurrent use.
type claims struct {
	mu          sync.Mutex // guards the fields below
	generations map[uint64]claim
	firings     int // number of claims that are not settled
}

// claim is the claim of an alarm on its generation.
type claim struct {
	owner   *Alarm
	settled bool // the message has left the process; only the timer's entries must be removed
}

// Take claims the firing of the alarm's timer, and reports whether the alarm has the claim now.
func (c *claims) Take(a *Alarm) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.generations == nil {
		c.generations = make(map[uint64]claim)
	}
	if held, ok := c.generations[a.Generation]; ok {
		return held.owner == a
	}
	c.generations[a.Generation] = claim{owner: a}
	c.firings++
	return true
}

// Settle records that the message of the timer has left the process, if the alarm has the claim.
func (c *claims) Settle(a *Alarm) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if held := c.generations[a.Generation]; held.owner == a && !held.settled {
		c.generations[a.Generation] = claim{owner: a, settled: true}
		c.firings--
	}
}

// Release releases the claim, if the alarm has it.
func (c *claims) Release(a *Alarm) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if held := c.generations[a.Generation]; held.owner == a {
		delete(c.generations, a.Generation)
		if !held.settled {
			c.firings--
		}
	}
}

// Firings returns the number of claims that are neither settled nor released.
func (c *claims) Firings() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.firings
}
