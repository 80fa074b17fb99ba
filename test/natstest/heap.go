package natstest

import "runtime"

// Heap returns the number of bytes in use on the heap, without garbage.
func Heap() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
