package engine

import "sync"

// mailbox is a queue without a capacity. Any goroutine may put items into it, and only the loop of a worker takes them.
// The queue stays short because the loop bounds the number of requests without an answer. A channel with room for all
// these answers would cost megabytes on every idle lane.
type mailbox[T any] struct {
	mu     sync.Mutex    // guards items and taken
	items  []T           // put since the last Take
	taken  []T           // returned by the last Take; the next Take reuses its memory
	signal chan struct{} // one slot; full if an item was put since the loop last received
}

func newMailbox[T any]() *mailbox[T] { return &mailbox[T]{signal: make(chan struct{}, 1)} }

// Signal returns a channel that has a value after a Put. The loop must receive the value, and then call Take.
func (m *mailbox[T]) Signal() <-chan struct{} { return m.signal }

// Put adds an item; it never blocks.
func (m *mailbox[T]) Put(item T) {
	m.mu.Lock()
	m.items = append(m.items, item)
	m.mu.Unlock()
	select {
	case m.signal <- struct{}{}:
	default:
	}
}

// Take returns the items that were put since the last Take, in order. The slice is valid until the next Take.
func (m *mailbox[T]) Take() []T {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.taken) // keeps no old item reachable
	m.items, m.taken = m.taken[:0], m.items
	return m.taken
}
