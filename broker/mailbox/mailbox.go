// Package mailbox brings answers and other events into a loop.
package mailbox

import "sync"

// Mailbox brings values into one loop, from any goroutine. It has no bound of its own: its length is the number of
// answers that the loop waits for, which the loop bounds. A channel of that capacity would cost megabytes on every idle
// lane.
type Mailbox[T any] struct {
	mu    sync.Mutex
	items []T
	spare []T
	bell  chan struct{} // one slot: an item was put since the last Take
}

// New makes an empty mailbox.
func New[T any]() *Mailbox[T] { return &Mailbox[T]{bell: make(chan struct{}, 1)} }

// Bell has a value when something was put since the last Take.
func (m *Mailbox[T]) Bell() <-chan struct{} { return m.bell }

// Put adds an item; it never blocks.
func (m *Mailbox[T]) Put(item T) {
	m.mu.Lock()
	m.items = append(m.items, item)
	m.mu.Unlock()
	select {
	case m.bell <- struct{}{}:
	default:
	}
}

// Take returns the items that were put since the last Take, in order. The slice is good until the next Take.
func (m *Mailbox[T]) Take() []T {
	m.mu.Lock()
	defer m.mu.Unlock()
	taken := m.items
	clear(m.spare)
	m.items, m.spare = m.spare[:0], taken
	return taken
}
