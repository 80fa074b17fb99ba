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
func (s Static) Acquire(ctx context.Context, lane string, waiting func()) (Lease, error) {
	if s.Lanes != nil && !slices.Contains(s.Lanes, lane) {
		waiting()
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return always{}, nil
}

// Owner returns "": the instances do not communicate.
func (s Static) Owner(string) string { return "" }

// Probe does nothing.
func (s Static) Probe() {}

// always is a lease that never ends.
type always struct{}

func (always) From() Cursor                          { return Cursor{} }
func (always) Held() bool                            { return true }
func (always) Beats() <-chan struct{}                { return nil }
func (always) Done() <-chan struct{}                 { return nil }
func (always) Decline()                              {}
func (always) Release(context.Context, Cursor) error { return nil }
