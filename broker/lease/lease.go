package lease

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
)

// memberLease implements Lease for a Member.
type memberLease struct {
	member  *Member
	epoch   uint64            // of the claim; zero for a lease that was taken in an outage, without a claim
	cursors map[string]Cursor // by lane
	done    chan struct{}     // closed by requestStop
	resumed chan struct{}     // capacity 1
	revoked atomic.Bool       // the lease has ended
	// denied is set when Held returned false although the lease has not ended.
	denied   atomic.Bool
	declined atomic.Bool // see Lease.Decline

	// stopBy is the time at which Run ends the lease, because it has asked the holder to stop. It is zero if Run has not
	// asked. Only Run uses it.
	stopBy time.Time
}

// release is a Release in progress.
type release struct {
	cursors map[string]Cursor
	done    chan struct{} // closed when the other instances can read the release
}

func (l *memberLease) Cursor(lane string) Cursor { return l.cursors[lane] }
func (l *memberLease) Resumed() <-chan struct{}  { return l.resumed }
func (l *memberLease) Done() <-chan struct{}     { return l.done }

func (l *memberLease) HasSuccessor() bool {
	return slices.ContainsFunc(l.member.livePeers(time.Now()), func(p caller) bool { return p.Waits })
}

// Decline takes effect in the next turn.
func (l *memberLease) Decline() {
	if !l.declined.Swap(true) {
		l.member.wake()
	}
}

func (l *memberLease) Held() bool {
	if l.revoked.Load() {
		return false
	}
	if l.member.permitted() {
		return true
	}
	if !l.denied.Swap(true) {
		l.member.wake() // so that the next turn renews the claim
	}
	return false
}

// Release passes the release to Run, and waits until the other instances can read it. It returns immediately if the
// lease has ended.
func (l *memberLease) Release(ctx context.Context, cursors map[string]Cursor) error {
	m, r := l.member, &release{cursors: cursors, done: make(chan struct{})}
	m.mu.Lock()
	if m.state.lease != l {
		m.mu.Unlock()
		return nil
	}
	m.state.release = r
	m.mu.Unlock()
	m.wake()
	select {
	case <-r.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("announce that this instance is not active any more: %w; another one takes over within seconds",
			ctx.Err())
	}
}

// requestStop asks the holder to stop.
func (l *memberLease) requestStop(by time.Time) {
	if l.stopBy.IsZero() {
		l.stopBy = by
		close(l.done)
	}
}

// resume tells the holder that Held may return true again.
func (l *memberLease) resume() {
	select {
	case l.resumed <- struct{}{}:
	default:
	}
}
