package broker

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
)

// How HoldBytes is divided: a quarter is for messages that readers have asked for and their lanes have not taken yet,
// the rest for messages that the lanes hold. Half of that rest is divided evenly, so that no lane starves another. The
// other half is shared by the lanes that need more. A lane may need it for long, for messages that wait for a silent
// target, for example. It must leave some bytes for lanes that need them later: of the shared half, a lane takes no
// more than freeShare times the bytes that are free then, so a lane alone takes two thirds. In a retry lane it is usual
// that a target takes nothing, so a retry lane takes no more than retryShare times the bytes that are free.
const (
	readersShare = 4
	evenShare    = 2
	freeShare    = 2.0
	retryShare   = 0.25
	// readerParts is how many buffers' worth of bytes a reader may have: two requests that overlap, and the messages that
	// it hands over.
	readerParts = 3
	// The least buffer keeps a reader from asking for each message alone. A buffer above the most makes no reader faster.
	leastBuffer, mostBuffer = 64 << 10, 1 << 20
	// mostAsked bounds the bytes that all readers ask for at once, with two requests each: nats-server disconnects a
	// client for which more than max_pending (64 MiB) waits to be sent, and after an outage all lanes have work at once.
	mostAsked = 48 << 20
	// wakeShare is the part of the shared bytes, one in so many, that must become free before the waiting lanes are woken:
	// they are not woken for each message.
	wakeShare = 32
	nobody    = math.MinInt64
)

// budget divides the bytes that the lanes of an instance may hold. A lane exceeds its part by one message at most, the
// last message that it took.
type budget struct {
	buffer int   // bytes of one request of a reader
	least  int64 // bytes that each lane has for itself
	shared int64 // bytes that all lanes share besides

	taken  atomic.Int64 // shared bytes in use
	wakeAt atomic.Int64 // when taken falls to this, the waiting lanes are woken; nobody while no lane waits

	mu       sync.Mutex // guards accounts
	accounts []*account
}

// newBudget divides a total of bytes among a number of lanes.
func newBudget(total, lanes int) *budget {
	lanes = max(lanes, 1)
	buffer := max(min(total/readersShare/lanes/readerParts, mostBuffer, mostAsked/2/lanes), leastBuffer)
	hold := total - total/readersShare
	least := hold / evenShare / lanes
	b := &budget{buffer: buffer, least: int64(least), shared: int64(hold - least*lanes)}
	b.wakeAt.Store(nobody)
	return b
}

// most is how many bytes a single lane can hold while the other lanes hold none.
func (b *budget) most() int { return int(b.least + takes(b.shared, freeShare)) }

// takes is how many of the free bytes a lane takes: share times the bytes that it leaves.
func takes(free int64, share float64) int64 { return int64(float64(free) * share / (share + 1)) }

// account is the part of a budget that one lane uses. Only the lane's loop calls its methods.
type account struct {
	of    *budget
	share float64 // freeShare or retryShare
	used  int64
	wake  func()      // called from another lane's loop; must not block
	wants atomic.Bool // the lane waits for room, and is to be woken
}

// open makes an account for a lane. Share is freeShare or retryShare. The account must be closed.
func (b *budget) open(share float64, wake func()) *account {
	a := &account{of: b, share: share, wake: wake}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.accounts = append(b.accounts, a)
	return a
}

// close gives all bytes back.
func (a *account) close() {
	a.set(0)
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
	if taken := a.of.taken.Add(change); change < 0 && taken <= a.of.wakeAt.Load() {
		a.of.wakeAll()
	}
}

// room reports whether the lane may take another message. If not, the lane is woken when other lanes have given bytes
// back. It knows by itself when it gives back its own.
func (a *account) room() bool {
	if a.fits() {
		return true
	}
	a.wants.Store(true)
	a.of.wakeBelow(a.of.taken.Load())
	return a.fits() // other lanes may have given bytes back before they saw that this lane waits
}

func (a *account) fits() bool { return a.used < a.most() }

// most is how many bytes the lane can hold while the other lanes hold as many as now.
func (a *account) most() int64 {
	own := max(0, a.used-a.of.least)
	return a.of.least + takes(max(0, own+a.of.shared-a.of.taken.Load()), a.share)
}

// half reports whether the lane holds more than half of the bytes that it could hold now.
func (a *account) half() bool { return a.used > a.most()/2 }

// wakeBelow makes sure that the waiting lanes are woken when noticeably fewer shared bytes are in use than the given
// number.
func (b *budget) wakeBelow(taken int64) {
	at := max(0, taken-b.shared/wakeShare)
	for now := b.wakeAt.Load(); now < at && !b.wakeAt.CompareAndSwap(now, at); now = b.wakeAt.Load() {
	}
}

// wakeAll wakes the waiting lanes.
func (b *budget) wakeAll() {
	b.wakeAt.Store(nobody) // first: a lane that begins to wait from here on sets it again
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, a := range b.accounts {
		if a.wants.Swap(false) {
			a.wake()
		}
	}
}
