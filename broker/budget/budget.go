// Package budget divides the memory of an instance among its lanes. A quarter is for messages that readers have asked
// for and their lanes have not taken yet, the rest for messages that the lanes hold. Half of that rest is divided
// evenly, so that no lane starves another. The other half is shared by the lanes that need more. A lane may need it for
// long, for messages that wait for a silent target, for example. It must leave some bytes for lanes that need them
// later: of the shared half, a lane takes no more than a share of the bytes that are free then.
package budget

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
)

// How many times the free bytes a lane takes of what is shared. With FreeShare, a lane alone takes two thirds. In a
// retry lane it is usual that a target takes nothing, so RetryShare is less.
const (
	FreeShare  = 2.0
	RetryShare = 0.25
)

const (
	readersShare = 4 // the part of all bytes, one in so many, for readers
	evenShare    = 2 // the part of the rest that is divided evenly
	// readerParts is how many buffers' worth of bytes a reader may have: two requests that overlap, and the messages
	// that it hands over.
	readerParts = 3
	// The least buffer keeps a reader from asking for each message alone. A buffer above the most makes no reader
	// faster.
	leastBuffer, mostBuffer = 64 << 10, 1 << 20
	// mostAsked bounds the bytes that all readers ask for at once, with two requests each: nats-server disconnects a
	// client for which more than max_pending (64 MiB) waits to be sent, and after an outage all lanes have work at
	// once.
	mostAsked = 48 << 20
	// wakeShare is the part of the shared bytes, one in so many, that must become free before the waiting lanes are
	// woken: they are not woken for each message.
	wakeShare = 32
	nobody    = math.MinInt64
)

// Budget divides the bytes that the lanes of an instance may hold. A lane exceeds its part by one message at most, the
// last message that it took.
type Budget struct {
	buffer int   // bytes of one request of a reader
	least  int64 // bytes that each lane has for itself
	shared int64 // bytes that all lanes share besides

	taken  atomic.Int64 // shared bytes in use
	wakeAt atomic.Int64 // when taken falls to this, the waiting lanes are woken; nobody while no lane waits

	mu       sync.Mutex // guards accounts
	accounts []*Account
}

// New divides a total of bytes among a number of lanes.
func New(total, lanes int) *Budget {
	lanes = max(lanes, 1)
	buffer := max(min(total/readersShare/lanes/readerParts, mostBuffer, mostAsked/2/lanes), leastBuffer)
	hold := total - total/readersShare
	least := hold / evenShare / lanes
	b := &Budget{buffer: buffer, least: int64(least), shared: int64(hold - least*lanes)}
	b.wakeAt.Store(nobody)
	return b
}

// Buffer is how many bytes a reader may ask for at once.
func (b *Budget) Buffer() int { return b.buffer }

// Most is how many bytes a single lane can hold while the other lanes hold none.
func (b *Budget) Most() int { return int(b.least + takes(b.shared, FreeShare)) }

// takes is how many of the free bytes a lane takes: share times the bytes that it leaves.
func takes(free int64, share float64) int64 { return int64(float64(free) * share / (share + 1)) }

// Account is the part of a budget that one lane uses. Only the lane's loop calls its methods.
type Account struct {
	of    *Budget
	share float64 // FreeShare or RetryShare
	used  int64
	wake  func()      // called from another lane's loop; must not block
	wants atomic.Bool // the lane waits for room, and is to be woken
}

// Open makes an account for a lane. Share is FreeShare or RetryShare. The account must be closed.
func (b *Budget) Open(share float64) *Account {
	a := &Account{of: b, share: share, wake: func() {}}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.accounts = append(b.accounts, a)
	return a
}

// Waits says how to wake the lane when there is room again. It is called before the first question for room.
func (a *Account) Waits(wake func()) { a.wake = wake }

// Close gives all bytes back.
func (a *Account) Close() {
	a.Set(0)
	a.of.mu.Lock()
	defer a.of.mu.Unlock()
	a.of.accounts = slices.DeleteFunc(a.of.accounts, func(other *Account) bool { return other == a })
}

// Set says how many bytes the lane holds now.
func (a *Account) Set(used int64) {
	change := max(0, used-a.of.least) - max(0, a.used-a.of.least)
	a.used = used
	if change == 0 {
		return
	}
	if taken := a.of.taken.Add(change); change < 0 && taken <= a.of.wakeAt.Load() {
		a.of.wakeAll()
	}
}

// Room reports whether the lane may take another message. If not, the lane is woken when other lanes have given bytes
// back. It knows by itself when it gives back its own.
func (a *Account) Room() bool {
	if a.fits() {
		return true
	}
	a.wants.Store(true)
	a.of.wakeBelow(a.of.taken.Load())
	return a.fits() // other lanes may have given bytes back before they saw that this lane waits
}

func (a *Account) fits() bool { return a.used < a.Most() }

// Most is how many bytes the lane can hold while the other lanes hold as many as now.
func (a *Account) Most() int64 {
	own := max(0, a.used-a.of.least)
	return a.of.least + takes(max(0, own+a.of.shared-a.of.taken.Load()), a.share)
}

// Half reports whether the lane holds more than half of the bytes that it could hold now.
func (a *Account) Half() bool { return a.used > a.Most()/2 }

// wakeBelow makes sure that the waiting lanes are woken when noticeably fewer shared bytes are in use than the given
// number.
func (b *Budget) wakeBelow(taken int64) {
	at := max(0, taken-b.shared/wakeShare)
	for now := b.wakeAt.Load(); now < at && !b.wakeAt.CompareAndSwap(now, at); now = b.wakeAt.Load() {
	}
}

// wakeAll wakes the waiting lanes.
func (b *Budget) wakeAll() {
	b.wakeAt.Store(nobody) // first: a lane that begins to wait from here on sets it again
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, a := range b.accounts {
		if a.wants.Swap(false) {
			a.wake()
		}
	}
}
