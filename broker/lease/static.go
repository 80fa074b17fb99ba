package lease

import (
	"context"
	"slices"
)

// Static owns a fixed set of lanes for as long as it lives. Several instances may share the work if their sets are
// disjoint; nobody takes over from one that dies.
type Static struct {
	// Lanes are the streams owned. Nil owns all.
	Lanes []string
}

// Run has nothing to do.
func (s Static) Run(ctx context.Context) { <-ctx.Done() }

// Acquire returns at once for a lane of the set, and waits for the end of ctx for any other.
func (s Static) Acquire(ctx context.Context, lane string, waiting func()) (Lease, error) {
	if s.Lanes != nil && !slices.Contains(s.Lanes, lane) {
		waiting()
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return always{}, nil
}

// Owner knows of nobody.
func (s Static) Owner(string) string { return "" }

// Probe changes nothing.
func (s Static) Probe() {}

type always struct{}

func (always) From() Cursor                          { return Cursor{} }
func (always) Held() bool                            { return true }
func (always) Beats() <-chan struct{}                { return nil }
func (always) Done() <-chan struct{}                 { return nil }
func (always) Release(context.Context, Cursor) error { return nil }
