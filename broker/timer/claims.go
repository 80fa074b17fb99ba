package timer

import "sync"

// Claims holds the firings of this process that are underway, so that a timer with two markers is delivered once. The
// zero Claims is ready. It is safe for concurrent use.
type Claims struct {
	mu sync.Mutex // guards by
	by map[uint64]any
}

// Take claims a generation for an owner, and reports whether that owner has it now.
func (c *Claims) Take(generation uint64, who any) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by == nil {
		c.by = make(map[uint64]any)
	}
	if other, taken := c.by[generation]; taken {
		return other == who
	}
	c.by[generation] = who
	return true
}

// Release releases a generation if it is the owner's.
func (c *Claims) Release(generation uint64, who any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by[generation] == who {
		delete(c.by, generation)
	}
}
