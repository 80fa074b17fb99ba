package broker

import "sync"

// mailbox brings answers and other events into a worker's loop. Its length is bounded by the number of answers that the
// worker waits for; a channel of that capacity would cost megabytes on every idle lane.
type mailbox[T any] struct {
	mu    sync.Mutex
	items []T
	spare []T
	bell  chan struct{} // one slot: an item was put since the last take
}

func newMailbox[T any]() *mailbox[T] { return &mailbox[T]{bell: make(chan struct{}, 1)} }

// put adds an item; it never blocks.
func (m *mailbox[T]) put(item T) {
	m.mu.Lock()
	m.items = append(m.items, item)
	m.mu.Unlock()
	select {
	case m.bell <- struct{}{}:
	default:
	}
}

// take returns the items that were put since the last take, in order. The slice is good until the next take.
func (m *mailbox[T]) take() []T {
	m.mu.Lock()
	defer m.mu.Unlock()
	taken := m.items
	clear(m.spare)
	m.items, m.spare = m.spare[:0], taken
	return taken
}
