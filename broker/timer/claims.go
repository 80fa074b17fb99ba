package timer

import "sync"

// Claims holds the firings in progress in this process, so that a timer with two markers is delivered once. The zero
// Claims is ready to use. Claims is safe for concurrent use.
type Claims struct {
	mu sync.Mutex     // guards by
	by map[uint64]any // the owner of each claimed generation
}

// Take claims a generation for an owner, and reports whether the owner has the claim now.
func (c *Claims) Take(generation uint64, owner any) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by == nil {
		c.by = make(map[uint64]any)
	}
	if other, taken := c.by[generation]; taken {
		return other == owner
	}
	c.by[generation] = owner
	return true
}

// Release releases the claim of an owner on a generation, if the owner has it.
func (c *Claims) Release(generation uint64, owner any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by[generation] == owner {
		delete(c.by, generation)
	}
}
