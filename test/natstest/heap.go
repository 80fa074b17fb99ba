package natstest

import "runtime"

// Heap is how many bytes are in use on the heap, without garbage.
func Heap() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
