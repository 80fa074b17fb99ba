//go:build !linux

package bench

// UsageOf knows nothing here.
func UsageOf(int) (Usage, error) { return Usage{}, nil }
