//go:build !linux

package bench

// UsageOf returns the zero Usage: the measurement needs Linux.
func UsageOf(int) (Usage, error) { return Usage{}, nil }
