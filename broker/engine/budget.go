package engine

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
)

// A lane with the share s may use s/(s+1) of the shared bytes that the other lanes leave free. So with freeShare, a
// single busy lane uses two thirds of the shared bytes. retryShare is smaller, since the targets of a retry lane often
// accept nothing.
const (
	freeShare  = 2.0
	retryShare = 0.25
)

const (
	readersShare = 4 // 1/readersShare of the memory is for the readers
	evenShare    = 2 // 1/evenShare of the remaining memory is divided evenly among the lanes
	// readerParts is the maximum number of buffers that a reader fills: one for each of two overlapping requests, and one
	// with messages that the lane has not taken yet.
	readerParts = 3
	// With a buffer of less than minBuffer bytes, a reader would request each message alone. A buffer of more than
	// maxBuffer bytes makes no reader faster.
	minBuffer, maxBuffer = 64 << 10, 1 << 20
	// maxRequested is the maximum number of bytes that all readers together have requested at a time, unless the buffers
	// have only minBuffer bytes. Each reader has at most two requests. After an outage, all lanes read at the same time,
	// and nats-server disconnects a client for which more than max_pending (64 MiB) waits to be sent.
	maxRequested = 48 << 20
	// The waiting lanes are woken when 1/wakeShare of the shared bytes has become free, and not for each message.
	wakeShare = 32
	noWaiter  = math.MinInt64 // the value of budget.wakeAt while no lane waits
)

// budget divides the memory of an instance among its lanes. A quarter is for messages that readers have requested and
// their lanes have not taken yet. The other three quarters are for messages that the lanes hold. Half of the three
// quarters is divided evenly, so that no lane starves another. The other half is shared by the lanes that need more. A
// lane may need shared bytes for a long time, for example for messages that wait for a silent target. So a lane may
// take only a part of the free shared bytes, and other lanes can take the other part later.
//
// A lane may exceed its limit by one message, and by the bodies of due timers (see loadShare).
type budget struct {
	buffer   int   // bytes that a reader may request with one request
	reserved int64 // bytes that each lane has for itself
	shared   int64 // bytes that all lanes share in addition

	sharedUsed atomic.Int64 // shared bytes in use
	wakeAt     atomic.Int64 // when sharedUsed falls to wakeAt, the waiting lanes are woken; noWaiter while no lane waits

	mu       sync.Mutex // guards accounts
	accounts []*account
}

// newBudget returns a budget that divides total bytes among a number of lanes. The stream of paused messages counts as
// maxDrains lanes.
func newBudget(total, lanes int) *budget {
	lanes = max(lanes, 1)
	buffer := max(min(total/readersShare/lanes/readerParts, maxBuffer, maxRequested/2/lanes), minBuffer)
	hold := total - total/readersShare
	reserved := hold / evenShare / lanes
	b := &budget{buffer: buffer, reserved: int64(reserved), shared: int64(hold - reserved*lanes)}
	b.wakeAt.Store(noWaiter)
	return b
}

// Window returns the maximum number of messages, and of their bytes, that may be on their way to targets: half of what
// one lane can hold. The arguments are the settings of the instance, and its number of lanes.
func Window(holdMessages, holdBytes, lanes int) (messages, bytes int) {
	bytes = newBudget(holdBytes, lanes+maxDrains-1).Max() / 2
	return min(holdMessages, bytes/flightOverhead), bytes // a lane holds at most twice holdMessages
}

// Max returns the number of bytes that a lane can hold while the other lanes hold none.
func (b *budget) Max() int { return int(b.reserved + portion(b.shared, freeShare)) }

// portion returns the number of free bytes that a lane with a share may use.
func portion(free int64, share float64) int64 { return int64(float64(free) * share / (share + 1)) }

// account is the part of a budget that one lane uses. Only the lane's loop calls its methods.
type account struct {
	budget  *budget
	share   float64     // freeShare or retryShare
	used    int64       // bytes that the lane holds
	wake    func()      // wakes this lane; set before the first call of room; other loops call it, so it must not block
	waiting atomic.Bool // the lane waits for memory, and must be woken
}

// Open returns an account for a lane with a share, freeShare or retryShare. The caller must close the account.
func (b *budget) Open(share float64) *account {
	a := &account{budget: b, share: share, wake: func() {}}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.accounts = append(b.accounts, a)
	return a
}

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
	if taken := a.budget.sharedUsed.Add(change); change < 0 && taken <= a.budget.wakeAt.Load() {
		a.budget.wakeAll()
	}
}

// room reports whether the lane may take another message: it has more than the given number of bytes left. If room
// returns false, the budget wakes the lane after other lanes have returned bytes. Bytes that only the lane itself
// returns need not wake it.
func (a *account) room(free int64) bool {
	if a.fits(free) {
		return true
	}
	a.waiting.Store(true)
	a.budget.wakeBelow(a.budget.sharedUsed.Load())
	return a.fits(free) // other lanes may have returned bytes before waiting was set
}

func (a *account) fits(free int64) bool { return a.used+free < a.limit() }

// limit returns the number of bytes that the lane can hold if the other lanes hold as many as they do now.
func (a *account) limit() int64 {
	ownShared := max(0, a.used-a.budget.reserved) // shared bytes that this lane uses
	return a.budget.reserved + portion(max(0, ownShared+a.budget.shared-a.budget.sharedUsed.Load()), a.share)
}

// halfUsed reports whether the lane holds more than half of its limit.
func (a *account) halfUsed() bool { return a.used > a.limit()/2 }

// wakeBelow ensures that the waiting lanes are woken when the shared bytes in use fall to used less 1/wakeShare of all
// shared bytes.
func (b *budget) wakeBelow(used int64) {
	at := max(0, used-b.shared/wakeShare)
	for current := b.wakeAt.Load(); current < at && !b.wakeAt.CompareAndSwap(current, at); current = b.wakeAt.Load() {
	}
}

func (b *budget) wakeAll() {
	b.wakeAt.Store(noWaiter) // before the scan, since a lane that begins to wait from now on sets wakeAt again
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, a := range b.accounts {
		if a.waiting.Swap(false) {
			a.wake()
		}
	}
}
