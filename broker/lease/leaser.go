package lease

import (
	"context"
	"time"
)

// Leaser grants lanes to one instance. Only the worker of a lane calls Acquire for the lane.
type Leaser interface {
	// Run takes part in the division of lanes until ctx ends, and then leaves. A Leaser need not grant a lease before Run
	// is called. The workers must release their leases before ctx ends.
	Run(ctx context.Context)
	// Acquire waits until this instance owns the lane, or returns the error of ctx if ctx ends first. If another instance
	// owns the lane, the Leaser calls onStandby, at most once, on any goroutine. This instance is then a standby, and
	// counts as ready.
	Acquire(ctx context.Context, lane string, onStandby func()) (Lease, error)
	// Owner returns the instance that owns a lane, as far as this instance knows. It returns "" if the lane is free, or if
	// the instances do not communicate.
	Owner(lane string) string
	// Probe must be called after an outage of JetStream, in which lanes may have changed their owners.
	Probe()
}

// Lease is the ownership of one lane, from Acquire to Release.
type Lease interface {
	// Cursor returns the position at which the previous owner stopped.
	Cursor() Cursor
	// Held reports whether this instance may act as the owner of the lane now. The worker calls Held in its loop, before
	// each delivery and each commit. If Held returns false before Done is closed, for example because the connection was
	// lost, it may return true again: see Ticks.
	Held() bool
	// Ticks returns a channel that has a value about once a second while there are other instances, and when Held may
	// return true again. The worker must receive the values in its loop; a worker that receives none counts as stuck, and
	// loses its lane. The channel is never closed. It is nil if no other instance can take over.
	Ticks() <-chan struct{}
	// Done returns a channel that is closed when the worker must stop. Either the lease has ended, and Held returns false.
	// Or another instance will own the lane after the release.
	Done() <-chan struct{}
	// Decline reports that the lane contains a message of a newer format, which this instance cannot read. If a live
	// instance of a newer format can own the lane, that instance becomes the owner. Otherwise, nothing changes.
	Decline()
	// Release gives up the lane and passes on the cursor. No message of the lane may be in flight any more.
	Release(ctx context.Context, cursor Cursor) error
}

// Cursor is the position in a lane up to which an owner has worked.
type Cursor struct {
	// Next is the lowest sequence that the next owner reads, or zero for the first sequence of the stream. A replica that
	// lags may still show messages below Next that were purged.
	Next uint64
	// Created is the time of creation of the stream that Next refers to. In a stream created at another time, the same
	// sequence is another message.
	Created time.Time
}
