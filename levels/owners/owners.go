package owners

import (
	"context"
	"slices"
)

// Owners hands out lanes to one instance.
type Owners interface {
	// Acquire waits until the lane is ours, or returns the error of ctx when that ends first. It calls waiting, once,
	// if the lane is not ours to begin with: an instance that stands by is as ready as it will be.
	Acquire(ctx context.Context, lane string, waiting func()) (Lease, error)
}

// Lease is the ownership of one lane from Acquire to Release.
type Lease interface {
	// From is the lowest sequence the new owner should read, zero when the lane's own first sequence says it all. A
	// lagging replica may still show what the previous owner committed below it.
	From() uint64
	// Held reports whether the lane is still ours. The owner asks in its own loop, before it fires and before it
	// commits, so that an owner that is stuck loses its lanes.
	Held() bool
	// Release gives the lane up after a clean stop. Next is the lowest sequence that has not arrived.
	Release(ctx context.Context, next uint64) error
}

// Static owns a fixed set of lanes for as long as it lives. Several instances may share the work if their sets are
// disjoint; nobody takes over from one that dies.
type Static struct {
	// Lanes are the streams owned. Nil owns all.
	Lanes []string
}

// Acquire returns at once for a lane of the set, and waits for the end of ctx for any other.
func (s Static) Acquire(ctx context.Context, lane string, waiting func()) (Lease, error) {
	if s.Lanes != nil && !slices.Contains(s.Lanes, lane) {
		waiting()
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return always{}, nil
}

type always struct{}

func (always) From() uint64                          { return 0 }
func (always) Held() bool                            { return true }
func (always) Release(context.Context, uint64) error { return nil }
