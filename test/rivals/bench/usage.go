package bench

import "time"

// Usage is the resource usage of a process. It is zero on systems other than Linux.
type Usage struct {
	CPU    time.Duration // CPU time of all threads since the start of the process
	Memory int64         // resident memory, in bytes
	Peak   int64         // maximum of the resident memory since the start of the process, in bytes
}
