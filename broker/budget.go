package broker

import (
	"slices"
	"sync"
	"sync/atomic"
)

// What of HoldBytes is for what: a quarter for what readers have asked for and their owners have not taken, the rest for
// what the lanes hold. Of that, half is divided evenly, so that no lane starves another, and half is whoever's needs it.
const (
	readersShare = 4
	evenShare    = 2
	// readerParts is how many buffers' worth of bytes a reader may have: two requests that overlap, and what it hands over.
	readerParts = 3
	// The least buffer keeps a reader from asking for every message by itself; more than the most makes none faster.
	leastBuffer, mostBuffer = 64 << 10, 1 << 20
	// mostAsked is what all readers ask for at once, two requests each: nats-server cuts off a client to which more than
	// max_pending (64 MiB) waits to be sent, and after an outage all lanes have work at once.
	mostAsked = 48 << 20
	// wakeShare of what is shared has to be free before those that wait for it are woken: not for each message.
	wakeShare = 8
)

// budget divides the bytes that the lanes of an instance may hold. A lane goes over its part by one message at most, the
// last that it took.
type budget struct {
	buffer int   // bytes, of one request of a reader
	least  int64 // bytes that each lane has for itself
	shared int64 // and all of them together besides

	taken   atomic.Int64 // of what is shared
	waiting atomic.Int32 // accounts that want to be woken

	mu       sync.Mutex // guards accounts
	accounts []*account
}

// newBudget divides so many bytes among so many lanes.
func newBudget(total, lanes int) *budget {
	lanes = max(lanes, 1)
	buffer := max(min(total/readersShare/lanes/readerParts, mostBuffer, mostAsked/2/lanes), leastBuffer)
	hold := total - total/readersShare
	least := hold / evenShare / lanes
	return &budget{buffer: buffer, least: int64(least), shared: int64(hold - least*lanes)}
}

// most is what a single lane can hold while the others hold nothing.
func (b *budget) most() int { return int(b.least + b.shared) }

// account is what one lane has of a budget. Its methods are for the lane's loop alone.
type account struct {
	of    *budget
	used  int64
	wake  func()      // called from another lane's loop; must not block
	wants atomic.Bool // to be woken
}

// open makes an account. It must be closed.
func (b *budget) open(wake func()) *account {
	a := &account{of: b, wake: wake}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.accounts = append(b.accounts, a)
	return a
}

// close gives everything back.
func (a *account) close() {
	a.set(0)
	if a.wants.Swap(false) {
		a.of.waiting.Add(-1)
	}
	a.of.mu.Lock()
	defer a.of.mu.Unlock()
	a.of.accounts = slices.DeleteFunc(a.of.accounts, func(other *account) bool { return other == a })
}

// set says how many bytes the lane holds now.
func (a *account) set(used int64) {
	change := max(0, used-a.of.least) - max(0, a.used-a.of.least)
	a.used = used
	if change == 0 {
		return
	}
	if taken := a.of.taken.Add(change); change < 0 && taken <= a.of.shared-a.of.shared/wakeShare {
		a.of.wakeAll()
	}
}

// room reports whether the lane may take another message. If not, it is woken when others have let some go; what it lets
// go itself it knows.
func (a *account) room() bool {
	if a.fits() {
		return true
	}
	if !a.wants.Swap(true) {
		a.of.waiting.Add(1)
	}
	return a.fits() // others may have let go before they knew that we want
}

func (a *account) fits() bool { return a.used < a.of.least || a.of.taken.Load() < a.of.shared }

// half reports whether the lane holds more than half of what it could have now.
func (a *account) half() bool {
	free := max(0, a.of.shared-a.of.taken.Load())
	return a.used > (max(a.used, a.of.least)+free)/2
}

// wakeAll wakes those who wait.
func (b *budget) wakeAll() {
	if b.waiting.Load() == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, a := range b.accounts {
		if a.wants.Swap(false) {
			b.waiting.Add(-1)
			a.wake()
		}
	}
}
