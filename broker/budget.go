package broker

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
)

// What of HoldBytes is for what: a quarter for what readers have asked for and their owners have not taken, the rest for
// what the lanes hold. Of that, half is divided evenly, so that no lane starves another, and half is whoever's needs it.
// One that needs it for long, with what waits for a silent target for example, leaves something for those that come to
// need it later: of what is shared, a lane takes no more than freeShare times what is free then, so alone two thirds. A
// retry lane, where it is no news that a target takes nothing, takes retryShare of what is free.
const (
	readersShare = 4
	evenShare    = 2
	freeShare    = 2.0
	retryShare   = 0.25
	// readerParts is how many buffers' worth of bytes a reader may have: two requests that overlap, and what it hands over.
	readerParts = 3
	// The least buffer keeps a reader from asking for every message by itself; more than the most makes none faster.
	leastBuffer, mostBuffer = 64 << 10, 1 << 20
	// mostAsked is what all readers ask for at once, two requests each: nats-server cuts off a client to which more than
	// max_pending (64 MiB) waits to be sent, and after an outage all lanes have work at once.
	mostAsked = 48 << 20
	// wakeShare of what is shared has to become free before those that wait for it are woken: not for each message.
	wakeShare = 32
	nobody    = math.MinInt64
)

// budget divides the bytes that the lanes of an instance may hold. A lane goes over its part by one message at most, the
// last that it took.
type budget struct {
	buffer int   // bytes, of one request of a reader
	least  int64 // bytes that each lane has for itself
	shared int64 // and all of them together besides

	taken  atomic.Int64 // of what is shared
	wakeAt atomic.Int64 // when no more is taken, those that wait are woken; nobody when none does

	mu       sync.Mutex // guards accounts
	accounts []*account
}

// newBudget divides so many bytes among so many lanes.
func newBudget(total, lanes int) *budget {
	lanes = max(lanes, 1)
	buffer := max(min(total/readersShare/lanes/readerParts, mostBuffer, mostAsked/2/lanes), leastBuffer)
	hold := total - total/readersShare
	least := hold / evenShare / lanes
	b := &budget{buffer: buffer, least: int64(least), shared: int64(hold - least*lanes)}
	b.wakeAt.Store(nobody)
	return b
}

// most is what a single lane can hold while the others hold nothing.
func (b *budget) most() int { return int(b.least + takes(b.shared, freeShare)) }

// takes is how much is taken of so much that is free by one who takes a share of what it leaves.
func takes(free int64, share float64) int64 { return int64(float64(free) * share / (share + 1)) }

// account is what one lane has of a budget. Its methods are for the lane's loop alone.
type account struct {
	of    *budget
	share float64 // of what is free
	used  int64
	wake  func()      // called from another lane's loop; must not block
	wants atomic.Bool // to be woken
}

// open makes an account for a lane that takes a share of what is free: freeShare or retryShare. It must be closed.
func (b *budget) open(share float64, wake func()) *account {
	a := &account{of: b, share: share, wake: wake}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.accounts = append(b.accounts, a)
	return a
}

// close gives everything back.
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

// room reports whether the lane may take another message. If not, it is woken when others have let some go; what it lets
// go itself it knows.
func (a *account) room() bool {
	if a.fits() {
		return true
	}
	a.wants.Store(true)
	a.of.wakeBelow(a.of.taken.Load())
	return a.fits() // others may have let go before they knew that we want
}

func (a *account) fits() bool { return a.used < a.most() }

// most is what the lane can hold while the others hold what they do.
func (a *account) most() int64 {
	own := max(0, a.used-a.of.least)
	return a.of.least + takes(max(0, own+a.of.shared-a.of.taken.Load()), a.share)
}

// half reports whether the lane holds more than half of what it could have now.
func (a *account) half() bool { return a.used > a.most()/2 }

// wakeBelow sees to it that those who wait are woken when noticeably less is taken than so much.
func (b *budget) wakeBelow(taken int64) {
	at := max(0, taken-b.shared/wakeShare)
	for now := b.wakeAt.Load(); now < at && !b.wakeAt.CompareAndSwap(now, at); now = b.wakeAt.Load() {
	}
}

// wakeAll wakes those who wait.
func (b *budget) wakeAll() {
	b.wakeAt.Store(nobody) // first: who waits from here on says so again
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, a := range b.accounts {
		if a.wants.Swap(false) {
			a.wake()
		}
	}
}
