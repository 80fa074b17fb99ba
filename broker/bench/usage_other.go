//go:build !linux

package bench

// UsageOf returns zero: this system is not supported.
func UsageOf(int) (Usage, error) { return Usage{}, nil }
