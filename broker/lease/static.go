package lease

import "context"

// Static makes its instance active permanently. No other instance may run beside it.
type Static struct{}

// Run waits for the end of ctx.
func (s Static) Run(ctx context.Context) { <-ctx.Done() }

// Acquire returns immediately.
func (s Static) Acquire(ctx context.Context, _ func()) (Lease, error) {
	return permanentLease{}, ctx.Err()
}

// Active returns "": the instance communicates with no other.
func (s Static) Active() string { return "" }

// Probe does nothing.
func (s Static) Probe() {}

type permanentLease struct{}

func (permanentLease) Cursor(string) Cursor                             { return Cursor{} }
func (permanentLease) Held() bool                                       { return true }
func (permanentLease) Resumed() <-chan struct{}                         { return nil }
func (permanentLease) Done() <-chan struct{}                            { return nil }
func (permanentLease) HasSuccessor() bool                               { return false }
func (permanentLease) Decline()                                         {}
func (permanentLease) Release(context.Context, map[string]Cursor) error { return nil }
