// Package static makes an instance of a test active permanently. It does not import package engine, whose own tests use
// it.
package static

import (
	"context"

	"delaybroker/broker/lease"
)

// Leaser makes its instance active permanently. No other instance may run beside it.
type Leaser struct{}

// Run waits for the end of ctx.
func (Leaser) Run(ctx context.Context) { <-ctx.Done() }

// Acquire returns immediately.
func (Leaser) Acquire(ctx context.Context, _ func()) (lease.Lease, error) { return Lease{}, ctx.Err() }

// Active returns "": the instance communicates with no other.
func (Leaser) Active() string { return "" }

// Probe does nothing.
func (Leaser) Probe() {}

// Lease is the lease of an instance that is always active.
type Lease struct{}

func (Lease) Cursor(string) lease.Cursor                             { return lease.Cursor{} }
func (Lease) Held() bool                                             { return true }
func (Lease) Resumed() <-chan struct{}                               { return nil }
func (Lease) Done() <-chan struct{}                                  { return nil }
func (Lease) HasSuccessor() bool                                     { return false }
func (Lease) Decline()                                               {}
func (Lease) Release(context.Context, map[string]lease.Cursor) error { return nil }
