//go:build !race

package natstest

import (
	"runtime"
	"sync"
)

// processors is the number of processors without a running bubble.
var processors = runtime.GOMAXPROCS(0)

var running struct {
	sync.Mutex
	bubbles int
}

// addBubbles changes the number of running bubbles: 1 for a start, -1 for an end. The process uses at most one
// processor for each running bubble, because the goroutines of one bubble mostly run in turn, and a switch between two
// processors costs twice as much. With the race detector, the process uses all processors.
func addBubbles(bubbles int) {
	running.Lock()
	defer running.Unlock()
	running.bubbles += bubbles
	n := processors
	if running.bubbles > 0 {
		n = min(n, running.bubbles)
	}
	runtime.GOMAXPROCS(n)
}
