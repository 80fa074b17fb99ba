//go:build !linux

package bench

// UsageOf returns the zero Usage, because only Linux is supported.
func UsageOf(int) (Usage, error) { return Usage{}, nil }
