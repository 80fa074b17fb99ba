package lease

import (
	"context"
	"sync/atomic"
)

// shared is a lease of Shared.
type shared struct {
	of    *Shared
	lane  string
	from  Cursor
	beats chan struct{} // one slot
	owes  debt
	done  chan struct{} // closed by end
	lost  atomic.Bool
	// denied is set when Held said no although the lane was not lost: its owner waits for a beat before it asks again.
	denied atomic.Bool

	// Touched by Run alone.
	epoch   uint64
	assumed bool // in an outage, without the table: see assume
	ended   bool
}

func (l *shared) From() Cursor           { return l.from }
func (l *shared) Beats() <-chan struct{} { return l.beats }
func (l *shared) Done() <-chan struct{}  { return l.done }

func (l *shared) Held() bool {
	if l.lost.Load() {
		return false
	}
	now := l.of.now()
	if l.of.standing.Load().good(now, l.of.cfg.Connected()) && (len(l.beats) == 0 || !l.owes.stuck(now)) {
		return true
	}
	l.denied.Store(true)
	l.of.wake() // perhaps only for the moment
	return false
}

// Release returns at once when the lane is lost already, and otherwise when others can see that it is free.
func (l *shared) Release(ctx context.Context, at Cursor) error {
	return l.of.release(ctx, l, at)
}

// beat gives the owner's loop something to take, unless it has not taken the last one.
func (l *shared) beat(now instant) {
	if len(l.beats) > 0 {
		return
	}
	l.owes.Store(&now)
	l.beats <- struct{}{} // there is room: Run alone sends
}

// end asks the owner to stop.
func (l *shared) end() {
	if !l.ended {
		l.ended = true
		close(l.done)
	}
}

// lose ends the lease: the lane is not ours any more.
func (l *shared) lose() {
	l.lost.Store(true)
	l.end()
}
