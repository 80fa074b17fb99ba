package lease

import (
	"context"
	"time"
)

// Leaser grants lanes to one instance. Each lane has one caller, its worker.
type Leaser interface {
	// Run takes part in the division of lanes until ctx ends, and then leaves. Without Run, a Leaser may grant no
	// lease. The workers must release their leases before ctx ends.
	Run(ctx context.Context)
	// Acquire waits until this instance owns the lane, or returns the error of ctx if that ends first. If another
	// instance owns the lane, it calls waiting, at most once: this instance then stands by, and counts as ready.
	Acquire(ctx context.Context, lane string, waiting func()) (Lease, error)
	// Owner returns the instance that owns a lane, as far as this one knows. It is empty if the lane is free, or if the
	// instances do not communicate.
	Owner(lane string) string
	// Probe reports the end of an outage of JetStream, in which lanes may have got other owners.
	Probe()
}

// Lease is the ownership of one lane, from Acquire to Release.
type Lease interface {
	// From is the cursor that the previous owner left.
	From() Cursor
	// Held reports whether this instance owns the lane now. The worker calls it in its own loop, before each delivery
	// and each commit. After false it may return true again, if the connection was lost and no other instance took over
	// meanwhile.
	Held() bool
	// Beats returns a channel that sends about once a second while there are other instances. The worker receives in
	// its loop, so a stuck worker loses its lane. The channel is never closed. It is nil if no other instance can take
	// over.
	Beats() <-chan struct{}
	// Done is closed when the worker must stop. Another instance already owns the lane, or will own it after the
	// release. In the first case, Held is false.
	Done() <-chan struct{}
	// Decline reports that the lane contains a message of a newer format, which this instance cannot read. If a live
	// instance of a newer format can own the lane, it becomes the owner. Otherwise nothing changes.
	Decline()
	// Release gives up the lane and passes on the cursor. No message of the lane may be in flight any more.
	Release(ctx context.Context, at Cursor) error
}

// Cursor is the position in a lane up to which an owner has worked.
type Cursor struct {
	// Next is the lowest undelivered sequence, or zero for the first sequence of the stream. A replica that lags may
	// still show messages below Next, which were purged.
	Next uint64
	// Created is the time of creation of the stream that Next refers to. In a stream created at another time, the same
	// sequence is another message.
	Created time.Time
}
