package engine

import "sync"

// keptItems is the number of items for which a mailbox keeps memory after a burst.
const keptItems = 256

// mailbox is a queue without a capacity. Any goroutine may put items into it, and only the loop of a worker takes them.
// The queue stays short because the loop bounds the number of requests without an answer. A channel with room for all
// these answers would cost megabytes on every idle lane.
type mailbox[T any] struct {
	mu     sync.Mutex    // guards items, taken and soon
	items  []T           // put since the last take
	taken  []T           // returned by the last take; the next take reuses its memory
	signal chan struct{} // one slot; full if an item must wake the loop
	soon   bool          // see takesSoon
}

func newMailbox[T any]() *mailbox[T] { return &mailbox[T]{signal: make(chan struct{}, 1)} }

// Signal returns a channel that has a value after a Put. The loop must receive the value, and then call take.
func (m *mailbox[T]) Signal() <-chan struct{} { return m.signal }

// Put adds an item; it never blocks.
func (m *mailbox[T]) Put(item T) {
	m.mu.Lock()
	m.items = append(m.items, item)
	m.mu.Unlock()
	m.wake()
}

// putLater is like Put, but does not wake a loop that takes the items soon anyway.
func (m *mailbox[T]) putLater(item T) {
	m.mu.Lock()
	m.items = append(m.items, item)
	soon := m.soon
	m.mu.Unlock()
	if !soon {
		m.wake()
	}
}

// takesSoon tells the mailbox, before each sleep of the loop, whether the sleep ends soon even without an item. If it
// does not, the items that putLater has added in the meantime wake the loop.
func (m *mailbox[T]) takesSoon(soon bool) {
	m.mu.Lock()
	m.soon = soon
	mustWake := !soon && len(m.items) > 0
	m.mu.Unlock()
	if mustWake {
		m.wake()
	}
}

func (m *mailbox[T]) wake() {
	select {
	case m.signal <- struct{}{}:
	default:
	}
}

// take returns the items that were put since the last take, in order. The slice is valid until the next take.
func (m *mailbox[T]) take() []T {
	m.mu.Lock()
	defer m.mu.Unlock()
	if clear(m.taken); cap(m.taken) > keptItems && len(m.items) < cap(m.taken)/8 { // clear: no old item stays reachable
		m.taken = nil
	}
	m.items, m.taken = m.taken[:0], m.items
	return m.taken
}
