package lease

import (
	"context"
	"time"
)

// Leaser hands out lanes to one instance. Its callers are called workers here: one for each lane.
type Leaser interface {
	// Run takes part in the division of lanes until ctx ends, and then leaves. Before Run, and without it, a Leaser may
	// grant no lease. The workers must release their leases before ctx ends.
	Run(ctx context.Context)
	// Acquire waits until the lane is this instance's, or returns the error of ctx if that ends first. It calls waiting,
	// at most once, if another instance owns the lane: then this instance stands by for it, and counts as ready.
	Acquire(ctx context.Context, lane string, waiting func()) (Lease, error)
	// Owner names the instance that owns a lane, as far as this one knows. It is empty if the lane is free, or if
	// instances do not know of each other.
	Owner(lane string) string
	// Probe reports that JetStream was away and answers again, so that lanes may have other owners.
	Probe()
}

// Lease is the ownership of one lane, from Acquire to Release.
type Lease interface {
	// From is the cursor that the previous owner left.
	From() Cursor
	// Held reports whether the lane is ours at this moment. The worker asks in its own loop, before each delivery and each
	// commit. After false it may return true again: the connection was lost, and no other instance has taken over
	// meanwhile.
	Held() bool
	// Beats has a value to receive about once a second while there are other instances. The worker receives it in its
	// loop. So a loop that is stuck loses its lane. The channel is never closed, and nil if no other instance could take
	// over.
	Beats() <-chan struct{}
	// Done is closed when the worker must stop: another instance already owns the lane, or will own it after the release.
	// Held distinguishes the two: it is false in the first case.
	Done() <-chan struct{}
	// Decline says that the lane holds a message of a newer format, which this instance cannot read. While an instance of
	// a newer format lives that would work the lane, that one should be the owner. Otherwise nothing changes.
	Decline()
	// Release gives the lane up, with the cursor. No message of the lane may be in flight any more.
	Release(ctx context.Context, at Cursor) error
}

// Cursor is the place in a lane up to which an owner has worked.
type Cursor struct {
	// Next is the lowest sequence that is not delivered. It is zero if that is the stream's first sequence. A replica that
	// lags may still show messages that were committed below it.
	Next uint64
	// Created is when the stream was created to which Next belongs. In a stream created at another time, the same sequence
	// is another message.
	Created time.Time
}
