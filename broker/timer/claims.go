package timer

import "sync"

// Claims holds the claims on firings in this process, so that a timer with two markers is delivered once. The zero
// Claims is ready to use. Claims is safe for concurrent use.
type Claims struct {
	mu       sync.Mutex       // guards the fields below
	by       map[uint64]claim // by generation
	underway int              // number of claims that are not settled
}

// claim is the claim on a generation.
type claim struct {
	owner   any
	settled bool // the message has left the process; only the timer's entries must be removed
}

// Take claims a generation for an owner, and reports whether the owner has the claim now.
func (c *Claims) Take(generation uint64, owner any) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by == nil {
		c.by = make(map[uint64]claim)
	}
	if other, taken := c.by[generation]; taken {
		return other.owner == owner
	}
	c.by[generation] = claim{owner: owner}
	c.underway++
	return true
}

// Settle notes that the message of a generation has left the process, if the owner has the claim on the generation.
func (c *Claims) Settle(generation uint64, owner any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if has, ok := c.by[generation]; ok && has.owner == owner && !has.settled {
		c.by[generation] = claim{owner: owner, settled: true}
		c.underway--
	}
}

// Release releases the claim on a generation, if the owner has the claim.
func (c *Claims) Release(generation uint64, owner any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if has, ok := c.by[generation]; ok && has.owner == owner {
		delete(c.by, generation)
		if !has.settled {
			c.underway--
		}
	}
}

// Underway returns the number of claims that are neither settled nor released.
func (c *Claims) Underway() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.underway
}
