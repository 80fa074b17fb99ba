package lease

import (
	"context"
	"fmt"
	"sync/atomic"
)

// sharedLease implements Lease for one lane of a Shared leaser.
type sharedLease struct {
	shared     *Shared
	lane       string
	cursor     Cursor
	ticks      chan struct{}           // capacity 1; the worker receives from it to prove that its loop runs
	tickSentAt atomic.Pointer[instant] // when the last tick was sent
	done       chan struct{}           // closed by requestStop
	revoked    atomic.Bool             // the lease has ended
	// denied is set when Held returned false although the lease has not ended. The worker then waits for a tick before it
	// calls Held again.
	denied atomic.Bool

	// Only Run uses the fields below.
	epoch         uint64 // the epoch of the claim in the table; zero if provisional
	provisional   bool   // taken in an outage, without the table: see divideByCalls
	stopRequested bool   // done is closed
}

func (l *sharedLease) Cursor() Cursor         { return l.cursor }
func (l *sharedLease) Ticks() <-chan struct{} { return l.ticks }
func (l *sharedLease) Done() <-chan struct{}  { return l.done }

// Decline takes effect in the next round.
func (l *sharedLease) Decline() {
	l.shared.mu.Lock()
	first := !l.shared.state.declinedLanes[l.lane]
	l.shared.state.declinedLanes[l.lane] = true
	l.shared.mu.Unlock()
	if first {
		l.shared.wake()
	}
}

func (l *sharedLease) Held() bool {
	if l.revoked.Load() {
		return false
	}
	now := l.shared.now()
	if l.shared.grace.Load().permits(now, l.shared.cfg.Connected()) && !l.stuck(now) {
		return true
	}
	l.denied.Store(true)
	l.shared.wake() // Run's next round sends a tick if Held returns true again
	return false
}

// Release passes the release to Run, and waits until the other instances can read that the lane is free. It returns
// immediately if the lease has ended.
func (l *sharedLease) Release(ctx context.Context, cursor Cursor) error {
	s, r := l.shared, &release{lease: l, cursor: cursor, done: make(chan struct{})}
	s.mu.Lock()
	if s.state.leases[l.lane] != l {
		s.mu.Unlock()
		return nil
	}
	select {
	case <-l.done:
	default:
		s.state.leaving = true // Run did not ask for the release, so this instance is stopping
	}
	s.state.releases = append(s.state.releases, r)
	s.mu.Unlock()
	s.wake()
	select {
	case <-r.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("announce that %s is free: %w; other instances take over within seconds", l.lane, ctx.Err())
	}
}

// stuck reports whether a tick has been in the channel for livenessTimeout.
func (l *sharedLease) stuck(now instant) bool {
	if len(l.ticks) == 0 {
		return false
	}
	sentAt := l.tickSentAt.Load()
	return sentAt != nil && sentAt.elapsed(now) >= livenessTimeout
}

// tick sends the worker a tick, unless the last tick is still in the channel.
func (l *sharedLease) tick(now instant) {
	if len(l.ticks) > 0 {
		return
	}
	l.tickSentAt.Store(&now)
	l.ticks <- struct{}{} // does not block: the channel is empty, and only Run sends
}

// requestStop asks the worker to stop.
func (l *sharedLease) requestStop() {
	if !l.stopRequested {
		l.stopRequested = true
		close(l.done)
	}
}
