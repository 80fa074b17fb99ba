package lease

import (
	"context"
	"slices"
)

// Static owns a fixed set of lanes permanently. Several instances may share the work if their sets are disjoint. If an
// instance dies, no other takes over its lanes.
type Static struct {
	// Lanes are the names of the lanes' streams; nil means all lanes.
	Lanes []string
}

// Run waits for the end of ctx.
func (s Static) Run(ctx context.Context) { <-ctx.Done() }

// Acquire returns immediately for a lane of the set, and waits for the end of ctx for any other.
func (s Static) Acquire(ctx context.Context, lane string, onStandby func()) (Lease, error) {
	if s.Lanes != nil && !slices.Contains(s.Lanes, lane) {
		onStandby()
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return permanentLease{}, nil
}

// Owner returns "": the instances do not communicate.
func (s Static) Owner(string) string { return "" }

// Probe does nothing.
func (s Static) Probe() {}

type permanentLease struct{}

func (permanentLease) Cursor() Cursor                        { return Cursor{} }
func (permanentLease) Held() bool                            { return true }
func (permanentLease) Ticks() <-chan struct{}                { return nil }
func (permanentLease) Done() <-chan struct{}                 { return nil }
func (permanentLease) Decline()                              {}
func (permanentLease) Release(context.Context, Cursor) error { return nil }
