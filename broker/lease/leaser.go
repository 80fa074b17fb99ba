package lease

import (
	"context"
	"time"
)

// Leaser grants lanes to one instance. Each lane has one caller, the worker.
type Leaser interface {
	// Run takes part in the division of lanes until ctx ends, and then leaves. A Leaser may grant no lease without Run.
	// The workers must release their leases before ctx ends.
	Run(ctx context.Context)
	// Acquire waits until the lane is this instance's, or returns the error of ctx if that ends first. It calls waiting,
	// at most once, if another instance owns the lane: then this instance stands by for it, and counts as ready.
	Acquire(ctx context.Context, lane string, waiting func()) (Lease, error)
	// Owner returns the instance that owns a lane, as far as this one knows. It is empty if the lane is free, or if the
	// instances do not know of each other.
	Owner(lane string) string
	// Probe reports that JetStream was away and answers again, so that lanes may have other owners.
	Probe()
}

// Lease is the ownership of one lane, from Acquire to Release.
type Lease interface {
	// From is the cursor that the previous owner left.
	From() Cursor
	// Held reports whether the lane is ours now. The worker calls it in its own loop, before each delivery and each
	// commit. After false it may return true again: the connection was lost, and no other instance took over meanwhile.
	Held() bool
	// Beats returns a channel that sends about once a second while there are other instances. The worker receives in
	// its loop, so a stuck loop loses its lane. The channel is never closed. It is nil if no other instance could take
	// over.
	Beats() <-chan struct{}
	// Done is closed when the worker must stop: another instance already owns the lane, or will own it after the release.
	// Held distinguishes the two: it is false in the first case.
	Done() <-chan struct{}
	// Decline reports that the lane contains a message of a newer format, which this instance cannot read. If a live
	// instance of a newer format would work the lane, it should be the owner. Otherwise nothing changes.
	Decline()
	// Release gives the lane up, with the cursor. No message of the lane may be in flight any more.
	Release(ctx context.Context, at Cursor) error
}

// Cursor is the position in a lane up to which an owner has worked.
type Cursor struct {
	// Next is the lowest sequence that is not delivered, or zero if that is the stream's first sequence. A replica that
	// lags may still show messages that were committed below it.
	Next uint64
	// Created is the time of creation of Next's stream. In a stream created at another time, the same sequence is
	// another message.
	Created time.Time
}
