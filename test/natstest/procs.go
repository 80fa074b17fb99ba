//go:build !race

package natstest

import (
	"runtime"
	"sync"
)

// processors is the usual number of processors.
var processors = runtime.GOMAXPROCS(0)

var running struct {
	sync.Mutex
	bubbles int
}

// useProcessors notes that a number of bubbles has begun, or has ended if it is negative. The process uses at most one
// processor for each running bubble: the goroutines of one bubble mostly hand over to each other, which costs twice as
// much between two processors. With the race detector, all processors are used.
func useProcessors(bubbles int) {
	running.Lock()
	defer running.Unlock()
	running.bubbles += bubbles
	n := processors
	if running.bubbles > 0 {
		n = min(n, running.bubbles)
	}
	runtime.GOMAXPROCS(n)
}
