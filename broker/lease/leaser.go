package lease

import (
	"context"
	"time"
)

// Leaser decides whether this instance is the active one.
type Leaser interface {
	// Run takes part in the choice of the active instance until ctx ends. A Leaser need not grant a lease before Run is
	// called. A lease that is not released when ctx ends is lost: the instance then looks like one that has crashed.
	Run(ctx context.Context)
	// Acquire waits until this instance is active, or returns the error of ctx if ctx ends first. If another instance is
	// active, the Leaser calls onStandby, at most once for each Acquire, on any goroutine: this instance then stands by,
	// and counts as ready. Acquire must not be called again before the lease is released.
	Acquire(ctx context.Context, onStandby func()) (Lease, error)
	// Active returns the id of the active instance, as far as this instance knows. It returns "" if no instance is
	// active, or if the instances do not communicate.
	Active() string
	// Probe must be called after an outage of JetStream, in which another instance may have become active.
	Probe()
}

// Lease is the activity of one instance, from Acquire to Release. It covers all lanes.
type Lease interface {
	// Cursor returns the position in a lane at which the previous active instance stopped.
	Cursor(lane string) Cursor
	// Held reports whether this instance may act as the active one now. Every loop calls Held before each delivery and
	// each commit. If Held returns false before Done is closed, for example because the connection was lost, it may
	// return true again: see Resumed.
	Held() bool
	// Resumed returns a channel that has a value when Held may return true again after it returned false. The holder must
	// then wake its loops. The channel is never closed. It is nil if Held never returns false.
	Resumed() <-chan struct{}
	// Done returns a channel that is closed when the holder must stop. Either the lease has ended, and Held returns
	// false. Or another instance will be active after the release.
	Done() <-chan struct{}
	// HasSuccessor reports whether another instance is ready to take over.
	HasSuccessor() bool
	// Decline reports a message of a newer format, which this instance cannot read. If an instance of a newer format
	// stands by, that instance becomes active. Otherwise, nothing changes.
	Decline()
	// Release ends the activity, and passes on the cursors of the lanes. The caller calls it when its loops have ended.
	// The next active instance repeats a message that is still in flight, under the same id.
	Release(ctx context.Context, cursors map[string]Cursor) error
}

// Cursor is the position in a lane up to which the active instance has worked.
type Cursor struct {
	// Next is the lowest sequence that the next active instance reads, or zero for the first sequence of the stream. A
	// replica that lags may still show messages below Next that were purged.
	Next uint64 `json:"next"`
	// Created is the time of creation of the stream that Next refers to. In a stream created at another time, the same
	// sequence is another message.
	Created time.Time `json:"created"`
}
