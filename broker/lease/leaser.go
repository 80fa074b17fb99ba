package lease

import (
	"context"
	"time"
)

// Leaser hands out lanes to one instance.
type Leaser interface {
	// Run does what ownership takes until ctx ends, and then leaves. Without it Acquire never returns. Leases end before
	// ctx does, so that they can be released.
	Run(ctx context.Context)
	// Acquire waits until the lane is ours, or returns the error of ctx when that ends first. It calls waiting, once, if
	// the lane is somebody else's to begin with: an instance that stands by is as ready as it will be.
	Acquire(ctx context.Context, lane string, waiting func()) (Lease, error)
	// Owner names the instance that owns a lane, as far as this one knows. It is empty when nobody does, or when instances
	// do not know of each other.
	Owner(lane string) string
	// Probe says that JetStream left questions without answers, and answers again: who owns what may have changed.
	Probe()
}

// Lease is the ownership of one lane from Acquire to Release.
type Lease interface {
	// From is where the previous owner left off.
	From() Cursor
	// Held reports whether the lane is ours at this moment. The owner asks in its own loop, before it fires and before it
	// commits. After false it may be true again: a connection was away, and nobody has taken over meanwhile.
	Held() bool
	// Beats has something to receive about once a second while there are other instances. The owner receives in its loop,
	// so that a loop that is stuck loses its lane. It is never closed, and nil where nobody else could take over.
	Beats() <-chan struct{}
	// Done is closed when the owner is to stop working: another instance has the lane already, or is to have it when it is
	// released. Held tells the two apart.
	Done() <-chan struct{}
	// Release gives the lane up once nothing is underway in it any more.
	Release(ctx context.Context, at Cursor) error
}

// Cursor is where an owner left off in a lane.
type Cursor struct {
	// Next is the lowest sequence that has not arrived, zero when the lane's own first sequence says it all. A lagging
	// replica may still show what was committed below it.
	Next uint64
	// Created is when the stream was created whose sequences these are. In a stream created at another time the same
	// sequences are other messages.
	Created time.Time
}
