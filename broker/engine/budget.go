package engine

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
)

// The share of a lane is the ratio of the shared bytes that it may use to the shared bytes that it must leave free.
// With freeShare, a single busy lane uses two thirds of the shared bytes. retryShare is smaller, since the targets of a
// retry lane often accept nothing.
const (
	freeShare  = 2.0
	retryShare = 0.25
)

const (
	readersShare = 4 // the readers get the total divided by readersShare
	evenShare    = 2 // of the rest, the part 1/evenShare is divided evenly among the lanes
	// readerParts is the maximum number of buffers that a reader fills: two overlapping requests, and the messages that
	// its lane has not taken yet.
	readerParts = 3
	// With less than minBuffer bytes, a reader would request each message alone. More than maxBuffer bytes make no reader
	// faster.
	minBuffer, maxBuffer = 64 << 10, 1 << 20
	// maxRequested bounds the bytes that all readers together request at a time, with two requests each. nats-server
	// disconnects a client for which more than max_pending (64 MiB) waits to be sent, and after an outage all lanes
	// have work at the same time.
	maxRequested = 48 << 20
	// The shared bytes divided by wakeShare must become free before the waiting lanes are woken, so that they are not
	// woken for each message.
	wakeShare = 32
	noWaiter  = math.MinInt64 // the value of budget.wakeAt while no lane waits
)

// budget divides the memory of an instance among its lanes. A quarter is for messages that readers have requested and
// their lanes have not taken yet. The rest is for messages that the lanes hold. Half of the rest is divided evenly, so
// that no lane starves another. The other half is shared by the lanes that need more. A lane may need shared bytes for
// a long time, for example for messages that wait for a silent target. To leave some for lanes that need them later, a
// lane may take only a part of the shared bytes that are free at the time.
//
// The last message that a lane takes may exceed the lane's part.
type budget struct {
	buffer   int   // bytes of one request of a reader
	reserved int64 // bytes that each lane has for itself
	shared   int64 // bytes that all lanes share in addition

	taken  atomic.Int64 // shared bytes in use
	wakeAt atomic.Int64 // when taken falls to wakeAt, the waiting lanes are woken; noWaiter while no lane waits

	mu       sync.Mutex // guards accounts
	accounts []*account
}

// newBudget returns a budget that divides total bytes among a number of lanes.
func newBudget(total, lanes int) *budget {
	lanes = max(lanes, 1)
	buffer := max(min(total/readersShare/lanes/readerParts, maxBuffer, maxRequested/2/lanes), minBuffer)
	hold := total - total/readersShare
	reserved := hold / evenShare / lanes
	b := &budget{buffer: buffer, reserved: int64(reserved), shared: int64(hold - reserved*lanes)}
	b.wakeAt.Store(noWaiter)
	return b
}

// Window returns the maximum number of messages and bytes of one lane that may be on their way to targets: half of what
// the lane can hold. The arguments are the settings of the instance, and its number of lanes.
func Window(holdMessages, holdBytes, lanes int) (messages, bytes int) {
	bytes = newBudget(holdBytes, lanes).Max() / 2
	return min(holdMessages, bytes/flightOverhead), bytes
}

// Buffer returns the number of bytes that a reader may request at a time.
func (b *budget) Buffer() int { return b.buffer }

// Max returns the number of bytes that a lane can hold while the other lanes hold none.
func (b *budget) Max() int { return int(b.reserved + portion(b.shared, freeShare)) }

// portion returns the number of free bytes that a lane with a share may use.
func portion(free int64, share float64) int64 { return int64(float64(free) * share / (share + 1)) }

// account is the part of a budget that one lane uses. Only the lane's loop calls its methods.
type account struct {
	budget  *budget
	share   float64     // freeShare or retryShare
	used    int64       // bytes that the lane holds
	wake    func()      // wakes this lane; another lane's loop calls it, so it must not block
	waiting atomic.Bool // the lane waits for memory, and must be woken
}

// Open returns an account for a lane. Share is freeShare or retryShare. The caller must close the account.
func (b *budget) Open(share float64) *account {
	a := &account{budget: b, share: share, wake: func() {}}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.accounts = append(b.accounts, a)
	return a
}

// OnRoom sets the function that wakes the lane when memory has become free. It must be called before the first call of
// Room.
func (a *account) OnRoom(wake func()) { a.wake = wake }

// Close returns all bytes of the lane to the budget.
func (a *account) Close() {
	a.Set(0)
	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()
	a.budget.accounts = slices.DeleteFunc(a.budget.accounts, func(other *account) bool { return other == a })
}

// Set records the number of bytes that the lane holds now.
func (a *account) Set(used int64) {
	change := max(0, used-a.budget.reserved) - max(0, a.used-a.budget.reserved)
	a.used = used
	if change == 0 {
		return
	}
	if taken := a.budget.taken.Add(change); change < 0 && taken <= a.budget.wakeAt.Load() {
		a.budget.wakeAll()
	}
}

// Room reports whether the lane may take another message and still leave the given number of bytes free. If Room
// returns false, the budget wakes the lane when other lanes have returned bytes. When only the lane itself returns
// bytes, the budget may leave it asleep.
func (a *account) Room(free int64) bool {
	if a.fits(free) {
		return true
	}
	a.waiting.Store(true)
	a.budget.wakeBelow(a.budget.taken.Load())
	return a.fits(free) // other lanes may have returned bytes before waiting was set
}

func (a *account) fits(free int64) bool { return a.used+free < a.Limit() }

// Limit returns the number of bytes that the lane can hold while the other lanes hold as many as now.
func (a *account) Limit() int64 {
	own := max(0, a.used-a.budget.reserved)
	return a.budget.reserved + portion(max(0, own+a.budget.shared-a.budget.taken.Load()), a.share)
}

// Half reports whether the lane holds more than half of its Limit.
func (a *account) Half() bool { return a.used > a.Limit()/2 }

// wakeBelow makes sure that the waiting lanes are woken when the shared bytes in use have fallen below taken by the
// shared bytes divided by wakeShare.
func (b *budget) wakeBelow(taken int64) {
	at := max(0, taken-b.shared/wakeShare)
	for now := b.wakeAt.Load(); now < at && !b.wakeAt.CompareAndSwap(now, at); now = b.wakeAt.Load() {
	}
}

// wakeAll wakes the waiting lanes.
func (b *budget) wakeAll() {
	b.wakeAt.Store(noWaiter) // first, since a lane that begins to wait from now on sets wakeAt again
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, a := range b.accounts {
		if a.waiting.Swap(false) {
			a.wake()
		}
	}
}
