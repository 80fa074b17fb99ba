package bench

import "time"

// Usage is the resource usage of a process. It is zero on systems other than Linux.
type Usage struct {
	CPU    time.Duration // of all threads of the process
	Memory int64         // resident bytes, garbage included
	Peak   int64         // maximum so far
}
